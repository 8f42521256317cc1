"""The samples of a trace as the analyses take them."""
