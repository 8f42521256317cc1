"""Which running thread plays which role of the plan."""
