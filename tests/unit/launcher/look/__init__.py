"""Of `numaplan look`."""
