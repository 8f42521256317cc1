"""Online refinement: observe a running program, ask a policy, act within a budget, undo what did not help.

The policies and what they observe and decide are `mapper/online`, which touches no process.
"""
