"""Samples that are memory accesses, as a trace wants them."""
