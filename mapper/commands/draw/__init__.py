"""Tables and trees for a terminal."""
