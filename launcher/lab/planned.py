"""A planned launch in the guest: what `nlaunch` does before and after a program, done on this side.

The plan is translated and the library's environment made here, where Python is some forty times as fast as
in the guest; the library then enforces and logs in the guest; the report is made from that log.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from numaplan.launcher.launch import LIBRARY, LaunchRequest, make_form, plan_for
from numaplan.profiler.identity import prepare
from numaplan.profiler.machine import Machine


class PlannedLaunch:
    """One launch of `program` with a plan, on a machine that is not this one.

    Raises UsageError when the plan cannot be used. folder: for the library's files; empty, and the
    program's user must be able to write there.
    """

    def __init__(
        self, plan_path: str, program: str, machine: Machine, environment: Mapping[str, str], folder: Path
    ) -> None:
        self._plan = plan_for(LaunchRequest([program], plan_path, remap=True), machine)
        self._form = make_form(self._plan, machine, program, "float", environment)
        self._folder = folder
        place = folder / "plan.bin"
        place.write_bytes(self._form.data)
        self.environment = {**prepare(folder, environment, LIBRARY), "NUMAPLAN_PLAN": str(place)}

    def report(self, exit_code: int) -> dict[str, Any]:
        """What was applied (`numaplan/applied/1`), from the library's log."""
        from numaplan.launcher.observed import read_observed
        from numaplan.launcher.report import make_report

        applied = make_report(self._plan, self._form, read_observed(self._folder), exit_code, ())
        content: dict[str, Any] = msgspec.to_builtins(applied)
        return content
