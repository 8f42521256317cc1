"""`numaplan`: all commands under one name, for machines where `nmap` is the network scanner.

`record`, `info` … are nprof's, `plan`, `compare` … are nmap's, `launch` is nlaunch and `lab` is nlab; `look`
is found only here.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from numaplan.common import fail, version
from numaplan.mapper.commands.main import COMMANDS as MAPPER
from numaplan.profiler.commands.main import COMMANDS as PROFILER

USAGE = """\
Usage: numaplan COMMAND [ARGS]...

  look                                        is NUMA hurting what runs, and what to do
  record, import, info, export, doctor,       as nprof: record a program's memory accesses
  setup
  machine, cluster, analyze, report, reduce,  as nmap: plan where threads and memory should live
  plan, compare, check, show, diff, store,
  export-plan
  launch                                      as nlaunch: run a program with its plan
  lab                                         as nlab: count local and remote accesses on a virtual machine

Example: numaplan record ./app && numaplan plan trace.db && numaplan launch --plan plan.json ./app
'numaplan COMMAND --help' says more.
"""

# command -> the module that runs it, and the words for it there; the recorder's `export` comes first
COMMANDS = {
    **{name: ("mapper.commands.main", [name]) for name in MAPPER},
    **{name: ("profiler.commands.main", [name]) for name in PROFILER},
    "export-plan": ("mapper.commands.main", ["export"]),
    "launch": ("launcher.commands.main", []),
    "lab": ("lab.commands.main", []),
    "look": ("launcher.commands.look", []),
}


def main() -> int:
    """Entry point of `numaplan`; returns the exit code."""
    name, *words = sys.argv[1:] or [""]
    if name in ("", "-h", "--help"):
        print(USAGE, end="")
        return 0 if name else 2
    if name == "--version":
        print(f"numaplan {version()}")
        return 0
    if name not in COMMANDS:
        return fail("numaplan", f"no command {name!r} — see 'numaplan --help'", 2)
    module, replaced = COMMANDS[name]
    run: Callable[[Sequence[str]], int] = import_module(f"numaplan.{module}").main
    return run([*replaced, *words])


if __name__ == "__main__":
    sys.exit(main())
