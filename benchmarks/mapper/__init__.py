"""Plans: what methods, sizes, jobs and exports cost and keep."""
