"""Plans that are found by program, machine and class of run: the plan store."""
