"""Analyses: how right they are on real codes, how fast, and how soon a report shows."""
