"""Counted runs: configurations, counts, results, comparisons, gates."""
