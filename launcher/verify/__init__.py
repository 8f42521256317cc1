"""What was applied, compared with the plan, and why they differ."""
