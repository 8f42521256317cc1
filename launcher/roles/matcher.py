"""`--match`: find out in a program's first seconds which thread plays which role, and bind it accordingly.

For programs whose threads take work in random order: the order of creation then says nothing.
"""

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from numaplan.common import UsageError
from numaplan.mapper import Plan, PlanThread
from numaplan.profiler import LiveEvents, LiveSamples, is_trace, live_events, start_sampler

from ..enforce.plan_table import PlanTable
from ..process.procfs import families
from ..process.soft_dirty import SoftDirtyProbe
from ..verify.logged_run import LoggedRun, read_logged_run
from .match import Match, load_matching, match_roles
from .memory_use import LiveUse, RoleUse, joined
from .seats import seated

PERIOD = 1000
LAB_PERIOD = 4001  # a virtual machine makes fewer accesses a second
PROTECTIONS = 4  # times that memory is made to fault again
LEAST_SAMPLES = 8  # samples a thread, without which nothing can be said
ATTEMPTS = 10  # times the seconds, at most, that are waited for them


class Matcher:
    """Samples from the program's start on; after `seconds` it matches and binds.

    plan: the plan with each thread at the seat of the role that it was found to play. Raises
    MachineLacksError where nothing can be sampled, UsageError for a trace that is not there.
    """

    def __init__(self, plan: Plan, table: PlanTable, workdir: Path, seconds: float, trace: str) -> None:
        self.plan = plan
        self._table, self._workdir, self._seconds = table, workdir, seconds
        self._trace = trace
        if trace and not is_trace(Path(trace)):
            raise UsageError(f"{trace}: not a trace that can be read", "give the one of the plan")
        load_matching(bool(trace))  # before the program starts: it takes longer than the samples
        self._sampler = start_sampler(_events(), [os.getpid()])
        self._sampler.take()  # nothing yet: loads what decodes
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="match", daemon=True)
        self._outcome = ""

    def start(self) -> None:
        """The program runs."""
        self._thread.start()

    def stop(self) -> None:
        """It has ended."""
        self._ended.set()
        if self._thread.ident:
            self._thread.join()
        else:
            self._sampler.close()

    def outcome(self) -> str:
        """What came of it, in a line."""
        return self._outcome or "threads were not matched to roles: the program ended first"

    def _run(self) -> None:
        began = time.monotonic()
        try:
            if not self.plan.memory:
                raise UsageError("the plan places no memory to tell them by", "try nmap plan --place-all")
            roles = self._find_roles()
            pieces: list[LiveSamples] = []
            for attempt in range(1, ATTEMPTS + 1):
                if self._wait(began + attempt * self._seconds - time.monotonic()):
                    return
                pieces.append(self._sampler.take())
                live = LiveUse(joined(pieces), self._logged(), self._table, roles)
                if live.samples >= LEAST_SAMPLES * max(len(live.tids), 1):
                    break
            self._outcome = self._match(roles, live, time.monotonic() - began)
        except Exception as error:  # the program goes on as it is, whatever happens here
            self._outcome = f"threads were not matched to roles: {error}"
        finally:
            self._sampler.close()  # the rest of the run costs nothing

    def _logged(self) -> LoggedRun:
        return read_logged_run(self._workdir, self._table.processes)

    def _wait(self, seconds: float) -> bool:
        """Let the program run; where only faults are sampled, make memory that is in use fault again.

        True when the program has ended.
        """
        probe = SoftDirtyProbe(1.0, 1)
        for _ in range(PROTECTIONS if self._sampler.what.backend == "faults" else 0):
            if self._ended.wait(max(seconds, 0) / (PROTECTIONS + 1)):
                return True
            pids = [pid for pid in families([os.getpid()]) if pid != os.getpid()]
            probe.update_costs(dict.fromkeys(pids, 0))  # a few times, whatever it costs
            probe.write_protect(pids, time.monotonic())
            seconds -= max(seconds, 0) / (PROTECTIONS + 1)
        return self._ended.wait(max(seconds, 0))

    def _find_roles(self) -> RoleUse:
        """While the program runs: reading a trace takes longer than its start."""
        if self._trace:
            return RoleUse.of_trace(self._trace, self.plan, self._table)
        return RoleUse.of_plan(self.plan, self._table)

    def _match(self, roles: RoleUse, live: LiveUse, seconds: float) -> str:
        rows = [
            row for row, thread in enumerate(self.plan.threads) if (thread.process, thread.path) in live.tids
        ]
        if live.samples < LEAST_SAMPLES * max(len(live.tids), 1):
            few = f"{live.samples} samples of planned memory in {seconds:.3g} s are too few"
            return f"threads were not matched to roles: {few}"
        fits, seats = [], dict[int, PlanThread]()
        for process in {self.plan.threads[row].process for row in rows}:
            own = [row for row in rows if self.plan.threads[row].process == process]
            found = self._match_some(own, roles, live)
            fits.append((found.fit_before, found.fit))
            for role, chosen in zip(own, found.threads, strict=True):
                seats[own[int(chosen)]] = self.plan.threads[role]
        others = {row: seat for row, seat in seats.items() if seat.cpus != self.plan.threads[row].cpus}
        self.plan, moved = seated(self.plan, others, live.tids, self._logged)
        when, left = f"after {seconds:.3g} s", len(others) - moved
        if left and not moved:
            return f"threads were not matched to roles: those to move had ended {when}"
        before, after = np.mean(fits, axis=0)
        where = f"{moved} of {len(rows)} threads" if moved else "no thread"
        ended = f", {left} had ended" if left else ""
        return f"{where} moved to another role's cpus {when}{ended} (fit {before:.2f}, now {after:.2f})"

    def _match_some(self, rows: list[int], roles: RoleUse, live: LiveUse) -> Match:
        index = np.ix_(rows, rows)
        comm = live.communication()
        return match_roles(
            roles.use[rows], live.use[rows], None if roles.comm is None else roles.comm[index], comm[index]
        )


def _events() -> LiveEvents:
    """What is sampled, more finely than one may for longer."""
    events = live_events("auto", PERIOD)
    return replace(events, period=LAB_PERIOD) if events.backend == "lab" else events
