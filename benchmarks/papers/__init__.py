"""`python -m benchmarks papers`: what the five papers report, beside what we get.

`experiments.py` says what is run, `measured.py` runs it over seeds, one module a paper (CIMAR's: two) makes
rows, `rows.py` judges them, `show.py` prints. Policies are as they ship; the simulated machines have one
calibration each for all of this.
"""
