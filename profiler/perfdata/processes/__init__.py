"""Processes, threads and their memory, as far as the records of a recording tell."""
