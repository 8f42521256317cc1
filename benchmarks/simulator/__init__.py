"""A NUMA machine in arrays: threads, pages, controllers and links, an operating system, and a policy on top.

`run.simulate(setup)` runs one experiment; what a machine can do is in `calibration.py`, what programs do in
`programs.py`. Time goes in steps of a quarter second, within which rates are in equilibrium
(`contention.py`).
"""
