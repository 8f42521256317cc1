"""Speed and accuracy against named peers, each a ratio measured in one run. `python -m benchmarks --help`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
