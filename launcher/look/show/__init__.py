"""What was found, for people, programs and collectors of metrics."""
