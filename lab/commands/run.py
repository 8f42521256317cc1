"""`nlab run`: run a program once on a virtual machine and count its accesses."""

import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec

from numaplan.common import Argument, Command, Json, Option, UsageError, reviewable_json, write_document

Program = Annotated[list[str], Argument("APP", help="The program and its arguments.", program=True)]
MachineName = Annotated[
    str, Option("--machine", "-m", help="AxB (A nodes of B cpus), a built-in name, or a file.")
]
Scale = Annotated[str, Option(help="Keep this much of the machine, and its distances.", metavar="NODESxCPUS")]
CpusPerNode = Annotated[int, Option(help="At most this many cpus a node (0: all).", metavar="CPUS", least=0)]
Memory = Annotated[str, Option(help="Memory of the whole guest (default 2G).", metavar="SIZE")]
Timeout = Annotated[float, Option(help="Seconds a run may take (0: no limit).", metavar="SECONDS", least=0)]


class RunCommand(Command, frozen=True):
    """Run a program once and count its accesses by cpu and node.

    The program's output, input and exit code are its own (124 when --timeout ended it); the table goes to
    stderr. With --json the program's output goes to stderr.

    Example: nlab run --machine 4x2 -- ./app 1000
    """

    argv: Program
    machine: MachineName
    scale: Scale = ""
    cpus_per_node: CpusPerNode = 0
    memory: Memory = ""
    timeout: Timeout = 0
    config: Annotated[str, Option(help="How to place; see 'nlab compare --help'.")] = ""
    plan: Annotated[str, Option(help="Run under nlaunch with this plan.", metavar="PLAN.JSON")] = ""
    online: Annotated[str, Option(help="Run under nlaunch with this policy.", metavar="POLICY")] = ""
    by_thread: Annotated[bool, Option(help="Also count each thread alone.")] = False
    counts: Annotated[str, Option(help="Write the counts here.", metavar="OUT.CSV")] = ""
    as_json: Json = False

    def run(self) -> int:
        from ..runs.configs import parse_configs
        from ..runs.session import Request, open_session
        from ..runs.tables import counts_csv, say, show_run

        name = self.config or ("plan" if self.plan else "online" if self.online else "default")
        parse_configs(name, self.plan, self.online)
        check_outputs(self.counts)
        request = Request(
            self.argv,
            self.machine,
            self.scale,
            self.cpus_per_node,
            self.memory,
            self.timeout,
            self.plan,
            self.online,
            self.by_thread,
        )
        sys.stdout.flush()
        with open_session(request, say) as session:
            result = session.run(name, _stdin(), 2 if self.as_json else 1, 2)
        if self.counts:
            write_document(self.counts, counts_csv(result))
        if self.as_json:
            print_json(result)
        else:
            show_run(result, sys.stderr)
        if result.timed_out:
            print(f"nlab: the program was ended after {self.timeout:g} s", file=sys.stderr)
        return result.exit_code


def check_outputs(*paths: str) -> None:
    """What cannot be written should stop us before the runs, not after."""
    for path in filter(None, paths):
        if not Path(path).absolute().parent.is_dir():
            raise UsageError(f"{path}: no folder {Path(path).parent}", "create it first")
        if Path(path).is_dir():
            raise UsageError(f"{path}: is a folder", "name a file")


def _stdin() -> int:
    """Our standard input, or -1 where there is none to read: closed, or a terminal that is not ours now."""
    try:
        if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
            return -1
        os.fstat(0)
    except OSError:
        return -1
    return 0


def print_json(document: msgspec.Struct) -> None:
    """Print it, indented."""
    print(reviewable_json(msgspec.to_builtins(document)).decode(), end="")
