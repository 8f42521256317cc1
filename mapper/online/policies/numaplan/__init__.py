"""The policy `numaplan`: which thread uses which memory, candidate placements, and what each would cost."""
