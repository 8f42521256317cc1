"""Waiting for what a test is about, for as long as a crowded machine may need."""

import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 100.0


def until(holds: Callable[..., object], *arguments: Any) -> None:
    """Return when it holds of the arguments; fail when it has not after PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while not holds(*arguments):
        assert time.monotonic() < end, f"{holds.__qualname__} does not hold after {PATIENCE_S:g} s"
        time.sleep(0.01)
