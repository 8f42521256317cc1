"""The settings (`--set`) of the emulation, and the arguments that the plugin gets for them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from numaplan.common import UsageError
from numaplan.machine import USUAL_CACHES, Machine, cache_shape, machine_shapes

# Option -> its default. Caches are SIZE:WAYS; sizes take K and M.
#   cache: whether a cache model decides each access's level, else it is unknown (but faster); schedule: fair:
#   threads take turns, so that sharing shows on few cores; turn: accesses in a turn, on average; seed: of the
#   order of turns and the choice of samples; l1, l2: each thread's caches, l3: each shared one, where the
#   machine does not describe them; l3_inclusive: L3 holds all that L1 and L2 hold, else what left them;
#   drop_runtime: leave out samples of the loader and of thread runtimes.
DEFAULTS = {
    "cache": "on",
    "schedule": "fair",
    "turn": "1000",
    "seed": "1",
    **USUAL_CACHES,
    "drop_runtime": "yes",
}
_CHOICES = {
    "cache": ("on", "off"),
    "schedule": ("fair", "free"),
    "l3_inclusive": ("yes", "no"),
    "drop_runtime": ("yes", "no"),
}
_NUMBERS = {"turn": (10, 1_000_000), "seed": (0, 2**63 - 1)}


@dataclass(frozen=True)
class EmulateOptions:
    """Checked options. plugin: the words for the plugin, `KEY=VALUE`."""

    cached: bool
    fair: bool
    drop_runtime: bool
    seed: int
    plugin: tuple[str, ...]


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
    return cache_shape(name, value)


def read_options(given: Mapping[str, str], run: int = 0, machine: Machine | None = None) -> EmulateOptions:
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
    words = tuple(f"{name}={value}" for name, value in values.items() if name != "drop_runtime")
    return EmulateOptions(
        values["cache"] == "on",
        values["schedule"] == "fair",
        values["drop_runtime"] == "yes",
        int(values["seed"]),
        words,
    )
