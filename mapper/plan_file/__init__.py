"""The plan file: its format, checks, differences, exports."""
