"""What a placement of a workload's threads and pages is expected to cost, planned or left to the kernel."""
