"""One module for each policy family; parameters have the papers' names and defaults (`parameters.py`)."""
