"""Names that people wrote, from DWARF: lines, functions and variables of what a recording saw."""
