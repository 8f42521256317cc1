"""What is loaded when it is first used, so that a command pays only for what it needs."""

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


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


def lazy_exports(package: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: where says in which of its modules each public name is."""

    def load(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{where[name]}"), name)

    return load
