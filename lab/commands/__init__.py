"""The command `nlab`."""
