"""Running a user's program, and what ends it or us."""
