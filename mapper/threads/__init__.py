"""Threads to nodes and cpus: the problem, what a placement costs, the methods, the solver, the seats."""
