"""The plan file: its form, checks, differences, exports."""
