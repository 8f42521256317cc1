from .commands.main import LaunchCommand as LaunchCommand
from .enforce.next_touch import (
    How as How,
    include_folder as include_folder,
    next_touch as next_touch,
    next_touch_counts as next_touch_counts,
)
from .enforce.plan_fit import fit_plan as fit_plan, misfits as misfits, remap_plan as remap_plan
from .enforce.plan_table import LIBRARY as LIBRARY, make_plan_table as make_plan_table
from .enforce.process_memory import memory_notes as memory_notes
from .enforce.start import PlannedStart as PlannedStart, planned_start as planned_start
from .jobs.part import planned_rank as planned_rank
from .launch.launch import launch_program as launch_program
from .launch.request import LaunchRequest as LaunchRequest
from .online.session import OnlineSession as OnlineSession
from .process.procfs import ThreadTimes as ThreadTimes, count_resident_pages as count_resident_pages
from .verify.applied import Applied as Applied
from .verify.logged_run import read_logged_run as read_logged_run
from .verify.report import make_report as make_report
