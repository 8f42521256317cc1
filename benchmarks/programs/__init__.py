"""Programs that nobody here wrote, or of kinds that are common: recorded, planned, and counted in the lab."""
