"""Online refinement: observe a running program, ask a policy, act within a budget, undo what did not help.

Pure half: `observation`, `actions`, `registry` and `policies/`. The other modules touch processes.
"""
