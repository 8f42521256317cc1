"""The policy `numaplan`: what was learnt of who uses what, placements worth a look, what each would cost."""
