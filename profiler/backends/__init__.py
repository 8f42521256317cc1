"""The ways of recording, in the order in which `auto` prefers them."""

from collections.abc import Callable
from importlib import import_module

from numaplan.common import MachineLacksError, UsageError
from numaplan.profiler.backends.base import (
    Backend,
    Capability,
    Progress,
    Recording,
    RecordRequest,
    SampleBlock,
    SeenThread,
)
from numaplan.profiler.machine import Machine

__all__ = [
    "BACKENDS",
    "Backend",
    "Capability",
    "Progress",
    "RecordRequest",
    "Recording",
    "SampleBlock",
    "SeenThread",
    "choose_backend",
]


def _loader(module: str, name: str) -> Callable[[], Backend]:
    def load() -> Backend:
        backend: Backend = getattr(import_module(f"numaplan.profiler.backends.{module}"), name)()
        return backend

    return load


BACKENDS: dict[str, Callable[[], Backend]] = {
    "faults": _loader("faults", "FaultsBackend"),
    "emulate": _loader("emulate", "EmulateBackend"),
}


def choose_backend(name: str, machine: Machine) -> tuple[Backend, str]:
    """The backend of that name, or the best that works here for `auto`, and why it was taken.

    Raises UsageError for an unknown name, MachineLacksError (with what mends it) when it cannot work here.
    """
    if name != "auto":
        if name not in BACKENDS:
            raise UsageError(f"no backend {name!r}", f"choose from auto, {', '.join(BACKENDS)}")
        backend = BACKENDS[name]()
        capability = backend.available(machine)
        if not capability.ok:
            raise MachineLacksError(f"backend {name}: {capability.why}", capability.mend)
        return backend, capability.why
    return _choose_automatically(machine)


def _choose_automatically(machine: Machine) -> tuple[Backend, str]:
    faults, emulate = BACKENDS["faults"](), BACKENDS["emulate"]()
    from numaplan.profiler.backends.faults import hint_faults_live

    if hint_faults_live(machine) and faults.available(machine).ok:
        return faults, "NUMA hint faults are live on this machine"
    emulation = emulate.available(machine)
    if emulation.ok:
        return emulate, "no sampler of memory accesses here; emulation sees every access"
    first_touches = faults.available(machine)
    if first_touches.ok:
        return faults, (
            "WARNING: only first touches are seen, too little for communication; "
            f"{emulation.mend or emulation.why}"
        )
    raise MachineLacksError(
        f"nothing to record with: faults: {first_touches.why}; emulate: {emulation.why}",
        emulation.mend or first_touches.mend,
    )
