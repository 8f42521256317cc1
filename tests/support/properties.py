"""How many examples a property is tried with."""

from typing import Any

from hypothesis import settings

USUAL = 100


def examples(count: int, **others: Any) -> settings:
    """`count` examples of a property in `make test`, in `make fuzz` as many more as of the others."""
    return settings(max_examples=count * settings().max_examples // USUAL, **others)
