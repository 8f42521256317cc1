"""A start with a plan where no launcher stays beside the program."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from numaplan.profiler import elf_facts, executable_of, prepare

from .plan_table import LIBRARY
from .program import gains_privileges, preload_obstacle
from .tracer import TRACER

_CLOSED, _GO, _PRIVILEGED = "1", "2", "3"  # of the library's enum np_fit
_PRELOAD = "LD_PRELOAD"


class PlannedStart(msgspec.Struct, frozen=True):
    """What to start: `before`, the program and its arguments; obstacle: why there is a `before`.

    before: words of the tracer, which starts another that follows the program, and becomes the program;
    nothing where the library is loaded.
    """

    before: tuple[str, ...]
    environment: dict[str, str]
    obstacle: str


def planned_start(table: Path, program: str, environment: Mapping[str, str]) -> PlannedStart:
    """How to start a program so that it runs as the plan table says; logs go to the table's folder."""
    prepared = prepare(table.parent, environment, LIBRARY)
    prepared |= {"NUMAPLAN_PLAN": str(table), "NUMAPLAN_TRACER": str(TRACER)}
    executable = executable_of(program)
    facts = elf_facts(executable)
    obstacle = preload_obstacle(executable, facts)
    if not obstacle:
        return PlannedStart((), prepared, "")
    go = facts is not None and facts.go
    fit = _PRIVILEGED if gains_privileges(executable) else _GO if go else _CLOSED
    loaded = f"{_PRELOAD}={environment.get(_PRELOAD, '')}"
    words = (str(TRACER), "exec", str(table), str(table.parent), "yield", fit, loaded, program)
    return PlannedStart(words, {k: v for k, v in environment.items() if k != _PRELOAD}, obstacle)
