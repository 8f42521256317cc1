"""`python -m benchmarks papers`: what the five papers report, beside what we get.

`experiments.py` runs the simulator over seeds, one module a paper makes rows, `rows.py` judges them,
`show.py` prints. Policies are as they ship; the simulated machines have one calibration each for all of this.
"""
