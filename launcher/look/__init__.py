"""`numaplan look`: whether NUMA hurts what runs, and what to do, from two looks at /proc.

`read` takes the looks, `find` are pure functions of two of them, `show` says what was found.
"""
