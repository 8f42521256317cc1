"""DWARF 2 to 5, read lazily and within bounds."""
