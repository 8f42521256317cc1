"""What is wrong: pure functions of two snapshots and a machine, one for each finding."""
