"""The version of the installed distribution."""


def version() -> str:
    """The distribution's version, or `0+source` when it runs without being installed."""
    # Here, as it is slow and every command imports this module.
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("numaplan")
    except PackageNotFoundError:
        return "0+source"
