"""Guests joined by a network: a job runs on all of them, and what goes between them is counted."""
