"""The version, as in pyproject.toml: asking the installed distribution takes longer than most commands."""

VERSION = "0.2.0"


def version() -> str:
    """This version of numaplan."""
    return VERSION
