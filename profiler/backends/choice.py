"""Which backend records: the one that was asked for, or for `auto` the best that works here.

A backend is loaded when it is asked for: the perf.data decoder takes longer than some programs run.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from numaplan.common import MachineLacksError, UsageError
from numaplan.machine import Machine

from .base import Backend, Capability, PerfChoices
from .part import RecordedPart
from .perf.kernel_files import ROOT

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

HARDWARE = ("pebs", "ibs", "spe")
_CALLS_TOLD = "leave it out: it tells calls without being asked"
_CALLS_ASKED = "--backend emulate, which tells calls without being asked"
BACKENDS = (*HARDWARE, "faults", "emulate")  # in the order in which `auto` prefers them
GROUP = "numaplan.backends"  # of entry points: backends of rooms to our right, and of other packages


def backend_of(name: str, root: Path = ROOT) -> Backend:
    """The backend of that name, for this machine or a recorded tree; raises UsageError for another name."""
    if name in HARDWARE:
        from .perf.hardware import HardwareBackend

        return HardwareBackend(name, root)
    if name == "faults":
        from .perf.faults import FaultsBackend

        return FaultsBackend()
    if name == "emulate":
        from .emulation.backend import EmulateBackend

        return EmulateBackend()
    for entry in _entries():
        if entry.name == name:
            return _loaded(entry)
    raise UsageError(f"no backend {name!r}", f"choose from auto, {', '.join(backend_names())}")


def backend_names() -> tuple[str, ...]:
    """All backends: those that `auto` may choose, and those that others bring."""
    return (*BACKENDS, *sorted({entry.name for entry in _entries()} - {*BACKENDS}))


def _entries() -> "EntryPoints":
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _loaded(entry: "EntryPoint") -> Backend:
    try:
        backend: Backend = entry.load()()
    except (ImportError, AttributeError) as error:
        raise MachineLacksError(f"backend {entry.name}: {error}", "reinstall what brings it") from error
    return backend


def choose_backend(
    name: str,
    machine: Machine,
    choices: PerfChoices | None = None,
    root: Path = ROOT,
    part: RecordedPart | None = None,
) -> tuple[Backend, str]:
    """The backend of that name, or the best that works here for `auto`, and why it was taken.

    choices, part: what must be possible with it; root: another machine's recorded sysfs and procfs, by which
    hardware is looked for. Raises UsageError for an unknown name or what the backend cannot do,
    MachineLacksError (with how to fix it) when it cannot work here.
    """
    needs_perf = (choices or PerfChoices()).named()
    if part and (part.skip_accesses or part.take_accesses):
        if needs_perf or name in (*HARDWARE, "faults"):
            raise UsageError("perf cannot count accesses", "give --skip and --take a time, such as 2s")
        name = "emulate" if name == "auto" else name
    if name == "auto":
        return _choose_automatically(machine, needs_perf, root)
    backend = backend_of(name, root)
    if needs_perf and name not in (*HARDWARE, "faults"):
        what = "emulation" if name == "emulate" else f"backend {name}"
        hint = "leave it out, or take a --backend that uses perf"
        if needs_perf[0] == "--call-graph":
            hint = _CALLS_TOLD if name == "emulate" else f"{hint}, or {_CALLS_ASKED}"
        raise UsageError(f"{needs_perf[0]}: {what} cannot do this", hint)
    if root != ROOT and name not in HARDWARE:
        return backend, "asked for"
    capability = backend.available(machine)
    if not capability.ok:
        raise MachineLacksError(f"backend {name}: {capability.reason}", capability.hint)
    return backend, capability.reason


def _choose_automatically(machine: Machine, needs_perf: list[str], root: Path) -> tuple[Backend, str]:
    from .perf.hardware_samplers import samplers

    hidden = ""
    for sampler in samplers(root):
        if sampler.ok:
            sampling = backend_of(sampler.backend, root)
            capability = sampling.available(machine)
            if capability.ok:
                return sampling, f"the machine samples memory accesses: {sampler.reason}"
            hidden = f"; {sampler.backend}: {capability.reason} ({capability.hint})"
    if root != ROOT:
        name = "faults" if needs_perf else "emulate"
        return backend_of(name, root), f"that sampler cannot be used there{hidden}"
    return _without_hardware(machine, needs_perf, hidden)


def _without_hardware(machine: Machine, needs_perf: list[str], hidden: str) -> tuple[Backend, str]:
    faults, emulate = backend_of("faults"), backend_of("emulate")
    from .perf.faults import hint_faults_live

    if hint_faults_live(machine) and faults.available(machine).ok:
        return faults, f"NUMA hint faults are active on this machine{hidden}"
    if needs_perf:
        emulation = Capability(False, f"emulation has no {needs_perf[0]}")
    else:
        emulation = emulate.available(machine)
    if emulation.ok:
        return emulate, f"no sampler of memory accesses here; emulation sees every access{hidden}"
    first_touches = faults.available(machine)
    if first_touches.ok:
        return faults, (
            "WARNING: only first touches are seen, too little for communication; "
            f"{emulation.hint or emulation.reason}{hidden}"
        )
    raise MachineLacksError(
        f"nothing to record with: faults: {first_touches.reason}; emulate: {emulation.reason}{hidden}",
        emulation.hint or first_touches.hint,
    )
