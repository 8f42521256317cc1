"""The settings (`--set`) of recordings in the guest: its own, and those of the emulation that it shares."""

from collections.abc import Mapping
from dataclasses import dataclass

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.profiler import EmulateOptions, read_emulate_options

from ..guest.shape import USUAL_MIB, parse_memory

# Of the emulation; there the threads' order is drawn, here the guest's kernel has it.
_CACHES = ("cache", "l1", "l2", "l3", "l3_inclusive", "reach", "for_footprint")
_SHARED = (*_CACHES, "transfers", "page_use", "drop_runtime", "turn")
_ALWAYS = ("turn", "page_use")
_FOR_CACHES = ("l1", "l2", "l3", "l3_inclusive", "llc_sizes", "llc_own", "transfers")


@dataclass(frozen=True)
class LabOptions:
    """Checked options; memory_mib: of the whole guest; plugin: words for the lab's plugin, `KEY=VALUE`."""

    emulation: EmulateOptions
    memory_mib: int
    plugin: tuple[str, ...]


def read_options(given: Mapping[str, str], machine: Machine) -> LabOptions:
    """The options of a request, with defaults; raises UsageError naming the one that is wrong."""
    unknown = sorted(set(given) - {*_SHARED, "memory"})
    if unknown:
        raise UsageError(f"no option {unknown[0]!r} of the lab", f"choose from {', '.join(_SHARED)}, memory")
    usual = max(USUAL_MIB, 128 * len(machine.nodes))
    memory = parse_memory(given["memory"]) if "memory" in given else usual
    shared = {name: value for name, value in given.items() if name in _SHARED}
    options = read_emulate_options(shared, machine=machine)
    wanted = (*_ALWAYS, *_FOR_CACHES) if options.cached else _ALWAYS
    words = [word for word in options.plugin if word.partition("=")[0] in wanted]
    return LabOptions(options, memory, tuple(words))
