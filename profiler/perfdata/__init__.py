"""The perf.data decoder: files of `perf record`, of any version, into arrays."""
