"""Sample running threads' memory accesses as they happen: which sampler there is, and starting it."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from numaplan.common import MachineLacksError

from ..backends.perf.privileges import is_privileged
from .lab import LabSampler, lab_events
from .samples import INSTRUCTIONS_PERIOD, LiveEvents, Sampler

_INSTRUCTIONS = f"instructions/period={INSTRUCTIONS_PERIOD}/u"
_HINT = "see 'nprof doctor'"
_TRIES = 5  # to watch processes of which some end before perf looks at them


def live_events(backend: str, period: int) -> LiveEvents:
    """What to sample with a backend: `lab`, `pebs` or `ibs`, `faults`, or `auto`, the first that works here.

    Raises MachineLacksError when it does not work here (spe: its packets are decoded only afterwards).
    """
    if backend == "auto":
        for name in ("lab", "pebs", "ibs"):
            with suppress(MachineLacksError):
                return live_events(name, period)
        return live_events("faults", period)
    if backend == "lab":
        return lab_events()
    if backend == "faults":
        from ..backends.perf.command import recording_perf
        from ..backends.perf.event_plan import ring_options

        recording_perf()
        options = ("-d", "-k", "CLOCK_MONOTONIC", *ring_options(is_privileged()))
        return LiveEvents("faults", ("page-faults",), options, 1)
    if backend not in ("pebs", "ibs"):
        raise MachineLacksError(f"backend {backend} cannot sample live", "take pebs, ibs or faults")
    return _hardware_events(backend, period)


def _hardware_events(backend: str, period: int) -> LiveEvents:
    from ..backends.base import PerfChoices
    from ..backends.perf.event_plan import BARE_METAL, WITH_PMU, plan_events
    from ..backends.perf.hardware_samplers import clock_khz, read_hardware

    try:
        plan = plan_events(backend, read_hardware(), period, PerfChoices(), {})
    except MachineLacksError as error:
        if error.hint != BARE_METAL:
            raise
        raise MachineLacksError(error.what, f"{WITH_PMU}; '--sampler faults' works without") from error
    # Only now: trying it takes longer, and where there is none the files of /sys mostly said so.
    from numaplan.machine import Machine

    from ..backends.perf.hardware import HardwareBackend

    capability = HardwareBackend(backend).available(Machine.load("local"))
    if not capability.ok:
        raise MachineLacksError(f"backend {backend}: {capability.reason}", capability.hint or _HINT)
    events = (*plan.events, _INSTRUCTIONS)
    return LiveEvents(backend, events, plan.options, plan.period, plan.machine_wide, 1e6 / clock_khz())


def start_sampler(what: LiveEvents, pids: Sequence[int]) -> Sampler:
    """Sample these processes and all that they start.

    Started on our own process, it sees every thread of what we start afterwards from its first instruction.
    Those that end meanwhile are left out. Raises MachineLacksError when it cannot.
    """
    if what.backend == "lab":
        return LabSampler(what)
    from .perf import PerfSampler

    for _ in range(_TRIES):
        try:
            return PerfSampler(what, pids)
        except MachineLacksError:
            living = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
            if not living or len(living) == len(pids):
                raise
            pids = living
    return PerfSampler(what, pids)
