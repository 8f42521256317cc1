"""Samples of running threads as they are taken: by perf, or by the virtual machine of the lab."""
