"""Sample records into columns."""
