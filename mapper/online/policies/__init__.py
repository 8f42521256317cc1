"""One module a policy family; parameters carry the papers' names and defaults (`parameters.py`)."""
