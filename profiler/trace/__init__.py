"""The trace file (one DuckDB database) and its tables; names are loaded when first used."""
