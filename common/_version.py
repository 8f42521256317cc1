"""The version, as in pyproject.toml: asking the installed distribution takes longer than most commands."""


def version() -> str:
    """This version of numaplan."""
    return "0.3.0"
