"""Prepares a plan for a program: whether it fits, its table, and library or tracer."""
