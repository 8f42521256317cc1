"""A plan made ready for a program: does it fit, as a table, by which way into the program."""
