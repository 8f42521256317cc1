"""Running processes: what /proc tells of them, where their pages are, and moving those."""
