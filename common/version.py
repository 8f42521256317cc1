"""The version of the installed distribution."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


def version() -> str:
    """The distribution's version, or `0+source` when it runs without being installed."""
    try:
        return installed("numaplan")
    except PackageNotFoundError:
        return "0+source"
