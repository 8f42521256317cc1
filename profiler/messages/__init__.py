"""What the ranks of an MPI job send each other, as the job's own MPI tells it."""
