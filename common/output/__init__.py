"""What people, other programs, notebooks and CI systems read."""
