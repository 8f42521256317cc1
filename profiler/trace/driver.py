"""The few parts of DuckDB that are needed."""

from typing import Any


def driver() -> Any:
    """DuckDB's native module where it can be had alone: its Python part takes longer to load than a query.

    It reads dicts of numpy arrays; Arrow tables only the Python part can scan, and that loads pandas.
    """
    try:
        import _duckdb

        _duckdb.connect  # noqa: B018  (of a later version it may be elsewhere)
        return _duckdb
    except (ImportError, AttributeError):
        import duckdb

        return duckdb
