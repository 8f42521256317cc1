"""The file of a recording: where it comes from, its head, its events, its compression."""
