"""Recording: how fast, how right, and what it costs the program."""
