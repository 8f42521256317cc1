"""Running a program with its plan, from the request to the summary."""
