"""Who communicates with whom: the matrix from samples, by our rule and by published ones."""
