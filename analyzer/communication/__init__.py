"""Who communicates with whom: the matrix from samples, ours and by published rules."""
