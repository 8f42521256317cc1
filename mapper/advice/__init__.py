"""What to do about a program's placement, with what each would gain."""
