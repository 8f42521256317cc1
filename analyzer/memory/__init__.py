"""Who uses which memory: pages, regions, cache lines."""
