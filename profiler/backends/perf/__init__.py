"""Recording with perf: hardware samplers (PEBS, IBS, SPE) and page faults."""
