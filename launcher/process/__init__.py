"""Running processes: what /proc says about them, where their pages are, and moving them."""
