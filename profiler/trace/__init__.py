"""The trace file (one DuckDB database): its tables, writing and reading it."""
