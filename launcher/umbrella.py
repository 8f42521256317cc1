"""`numaplan`: all commands under one name, for machines where `nmap` is the network scanner.

`record`, `info` … are nprof's, `plan`, `compare` … are nmap's, `launch` is nlaunch and `lab` is nlab.
"""

import sys
from collections.abc import Callable

from numaplan.common import version

USAGE = """\
Usage: numaplan COMMAND [ARGS]...

  record, import, info, export, doctor        as nprof: record a program's memory accesses
  machine, analyze, report, plan, compare,    as nmap: plan where threads and memory should live
  check, show, diff, export-plan
  launch                                      as nlaunch: run a program with its plan
  lab                                         as nlab: count local and remote accesses on a virtual machine

Example: numaplan record ./app && numaplan plan trace.db && numaplan launch --plan plan.json ./app
'numaplan COMMAND --help' says more.
"""

PROFILER = ("record", "import", "info", "export", "doctor")
MAPPER = ("machine", "analyze", "report", "plan", "compare", "check", "show", "diff")


def _profiler() -> None:
    from numaplan.profiler.cli import main

    main()


def _mapper() -> None:
    from numaplan.mapper.cli import main

    main()


def _launcher() -> None:
    from numaplan.launcher.cli import main

    main()


def _lab() -> None:
    from numaplan.launcher.lab.cli import main

    main()


def _target(command: str) -> tuple[Callable[[], None], list[str]] | None:
    """The command's entry point, and the words that replace its own name."""
    if command in PROFILER:
        return _profiler, [command]
    if command in MAPPER:
        return _mapper, [command]
    return {
        "export-plan": (_mapper, ["export"]),
        "launch": (_launcher, []),
        "lab": (_lab, []),
    }.get(command)


def main() -> None:
    """Entry point of `numaplan`."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print(USAGE, end="")
        sys.exit(0 if words else 2)
    if words[0] == "--version":
        print(f"numaplan {version()}")
        sys.exit(0)
    found = _target(words[0])
    if found is None:
        print(f"numaplan: error: no command {words[0]!r} — see 'numaplan --help'", file=sys.stderr)
        sys.exit(2)
    entry, replaced = found
    sys.argv[1:2] = replaced
    entry()
