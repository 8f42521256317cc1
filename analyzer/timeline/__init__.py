"""Accesses over time: the timeline, phases, and when the program changes."""
