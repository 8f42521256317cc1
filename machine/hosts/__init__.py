"""The hosts of a job, as launchers and batch systems list them."""
