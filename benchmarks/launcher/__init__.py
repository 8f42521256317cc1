"""Launching with a plan, online policies, next-touch and `numaplan look`: what they cost and bring."""
