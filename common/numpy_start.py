"""Loading numpy for a command: with one thread."""

import os


def load_numpy() -> None:
    """With one thread: its others would only wait, and take time and memory that a job may not have."""
    name = "OPENBLAS_NUM_THREADS"
    given = name in os.environ
    os.environ.setdefault(name, "1")
    try:
        import numpy  # noqa: F401
    finally:
        if not given:
            del os.environ[name]  # not for the programs that we start
