"""The command `nprof`."""
