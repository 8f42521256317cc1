"""What the lab needs on this machine."""
