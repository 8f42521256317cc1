"""The settings (`--set`) of the emulation, and the arguments that the plugin gets for them."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from numaplan.common import UsageError, read_size
from numaplan.machine import (
    USUAL_CACHES,
    Machine,
    cache_shape,
    format_list,
    larger_sizes,
    last_level_sizes,
    machine_shapes,
)

# Option -> its default. Caches are SIZE:WAYS; sizes take K and M.
#   cache: whether a cache model decides each access's level, else it is unknown (but faster); schedule: fair:
#   threads take turns, so that sharing shows on few cores; turn: accesses in a turn, on average; seed: of the
#   order of turns and the choice of samples; l1, l2: each thread's caches, l3: each shared one, where the
#   machine does not describe them; l3_inclusive: L3 holds all that L1 and L2 hold, else what left them;
#   transfers: count all lines that threads take from each other (with the cache model); page_use: count who
#   uses which page (when threads take turns); calls: tell which calls samples are in; reach: count what
#   last-level caches of other sizes would miss; for_footprint: bytes of the input for which the recording
#   stands; drop_runtime: leave out what the loader and thread runtimes do; show_cpus: the program sees the
#   machine's cpus, not the host's; avx2: whether an x86_64 program may use it, "auto": with a QEMU that gets
#   it right.
DEFAULTS = {
    "cache": "on",
    "schedule": "fair",
    "turn": "1000",
    "seed": "1",
    **USUAL_CACHES,
    "transfers": "on",
    "page_use": "on",
    "calls": "on",
    "reach": "on",
    "for_footprint": "",
    "drop_runtime": "yes",
    "show_cpus": "yes",
    "avx2": "auto",
}
_CHOICES = {
    "cache": ("on", "off"),
    "schedule": ("fair", "free"),
    "l3_inclusive": ("yes", "no"),
    "transfers": ("on", "off"),
    "page_use": ("on", "off"),
    "calls": ("on", "off"),
    "reach": ("on", "off"),
    "drop_runtime": ("yes", "no"),
    "show_cpus": ("yes", "no"),
    "avx2": ("auto", "on", "off"),
}
_OURS = ("drop_runtime", "reach", "for_footprint", "show_cpus", "avx2")  # not for the plugin
_NUMBERS = {"turn": (10, 1_000_000), "seed": (0, 2**63 - 1)}


@dataclass(frozen=True)
class EmulateOptions:
    """Checked options. plugin: the words for the plugin, `KEY=VALUE`.

    sizes: bytes of the last-level caches whose misses are counted, ascending up to the machine's; none where
    they are not; larger: of those beyond, ascending; footprint: bytes of the input for which the recording
    stands, 0: its own; transfers: whether it is counted who takes lines from whom; page_use: whether, who
    uses which page.
    """

    cached: bool
    fair: bool
    drop_runtime: bool
    seed: int
    plugin: tuple[str, ...]
    sizes: tuple[int, ...] = ()
    footprint: int = 0
    larger: tuple[int, ...] = ()
    transfers: bool = False
    page_use: bool = False
    avx2: str = "auto"


def _checked(name: str, value: str) -> str:
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise UsageError(f"{name}={value}: not known", f"give one of {', '.join(_CHOICES[name])}")
        return value
    if name in _NUMBERS:
        low, high = _NUMBERS[name]
        if not re.fullmatch(r"[0-9]{1,19}", value) or not low <= int(value) <= high:
            raise UsageError(f"{name}={value}: not a number in range", f"give {low} to {high}")
        return str(int(value))
    if name == "for_footprint":
        return str(read_size("--for-footprint", value, least=1) if value else 0)
    return cache_shape(name, value)


def _shown(machine: Machine) -> list[str]:
    """None where the program sees them anyway: the plugin needs to do nothing then."""
    if set(machine.cpus) == os.sched_getaffinity(0):
        return []
    return [f"shown={format_list(machine.cpus).replace(',', ':')}"]


def read_emulate_options(
    given: Mapping[str, str], run: int = 0, machine: Machine | None = None
) -> EmulateOptions:
    """The options of a request, with defaults; raises UsageError naming the one that is wrong.

    run: which of several runs, from 0; each has the next seed. machine: whose caches are the defaults.
    """
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        raise UsageError(f"no emulation option {unknown[0]!r}", f"choose from {', '.join(DEFAULTS)}")
    values = {name: _checked(name, value) for name, value in {**DEFAULTS, **given}.items()}
    described = machine_shapes(machine) if machine else {}
    values.update((name, word) for name, word in described.items() if name not in given)
    values["seed"] = str((int(values["seed"]) + run) % 2**63)
    sizes = last_level_sizes(values, machine) if values["cache"] == values["reach"] == "on" else []
    footprint = int(values["for_footprint"])
    if footprint and not sizes:
        raise UsageError("--for-footprint without a model of caches", "leave out --no-cache and reach=off")
    words = [f"{name}={value}" for name, value in values.items() if name not in _OURS]
    larger = larger_sizes(sizes[-1], machine) if sizes else []
    words += [f"llc_own={len(sizes)}"] * bool(sizes)
    words += ["runtime=yes"] * (values["drop_runtime"] == "no")
    words += _shown(machine) if machine and values["show_cpus"] == "yes" else []
    words += [f"llc_sizes={':'.join(map(str, sizes + larger))}"] * bool(sizes)
    return EmulateOptions(
        values["cache"] == "on",
        values["schedule"] == "fair",
        values["drop_runtime"] == "yes",
        int(values["seed"]),
        tuple(words),
        tuple(sizes),
        footprint,
        tuple(larger),
        values["cache"] == values["transfers"] == "on",
        values["page_use"] == "on" and values["schedule"] == "fair",
        values["avx2"],
    )
