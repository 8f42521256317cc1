"""Speed and accuracy against named peers, each a ratio measured in one run. `python -m benchmarks --help`."""
