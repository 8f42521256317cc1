"""The workload to plan for: from a trace, from several, or from matrices in files."""
