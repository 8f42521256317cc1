"""Plans and methods judged: against what the program does today, and beside each other."""
