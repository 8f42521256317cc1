"""The ways of recording: perf with hardware samplers or page faults, and emulation."""
