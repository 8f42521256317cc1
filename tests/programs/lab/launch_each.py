"""Launches programs one after the other as nlaunch does, each with its plan: Python starts slowly in a guest.

launch_each.py PLAN REPORT UNPLANNED PROGRAM [ARGUMENT]… [-- PLAN REPORT UNPLANNED PROGRAM [ARGUMENT]…]…
"""

import sys
from itertools import groupby

from numaplan.launcher.launch.launch import LaunchRequest, launch_program

codes = []
for ends, words in groupby(sys.argv[1:], "--".__eq__):
    if not ends:
        plan, report, unplanned, *argv = words
        request = LaunchRequest(argv, plan, report, unplanned=unplanned, quiet=True)
        codes.append(launch_program(request))
sys.exit(max(codes))
