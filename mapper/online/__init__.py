"""Placement of running programs: what policies observe, what they may ask for, and the policies."""
