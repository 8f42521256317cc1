"""Launches programs one after the other as nlaunch does, each with its plan: Python starts slowly in a guest.

launch_each.py PLAN REPORT PROGRAM [ARGUMENT]… [-- PLAN REPORT PROGRAM [ARGUMENT]…]…
"""

import sys
from itertools import groupby

from numaplan.launcher.launch.launch import LaunchRequest, launch_program

codes = []
for ends, words in groupby(sys.argv[1:], "--".__eq__):
    if not ends:
        plan, report, *argv = words
        codes.append(launch_program(LaunchRequest(argv, plan, report, quiet=True)))
sys.exit(max(codes))
