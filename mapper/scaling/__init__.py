"""What a program does with another number of threads than those of its recordings."""
