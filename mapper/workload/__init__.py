"""What a plan is made for: from a trace, from several, or from matrices in files."""
