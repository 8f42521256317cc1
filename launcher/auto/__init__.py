"""Plans that are found: looked up before the program starts, and made from its first run."""
