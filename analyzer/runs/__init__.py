"""Several traces: of a program's runs, or of a job's ranks."""
