"""Pages to nodes: who uses them, runs with one home, capacity, traffic."""
