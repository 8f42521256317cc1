"""`nmap`: plan which NUMA node each thread and each piece of memory should live on."""

import os
import re
import sys
from collections.abc import Sequence

from numaplan.common import fail, leave, run_tool

COMMANDS = {
    "machine": "machine:MachineCommand",
    "cluster": "cluster:ClusterCommand",
    "analyze": "analyze:AnalyzeCommand",
    "report": "report:ReportCommand",
    "reduce": "reduce:ReduceCommand",
    "plan": "plan:PlanCommand",
    "compare": "compare:CompareCommand",
    "check": "check:CheckCommand",
    "show": "plans:ShowCommand",
    "diff": "plans:DiffCommand",
    "export": "plans:ExportCommand",
    "store": "store:STORE",
}
ABOUT = """Plan which NUMA node each thread and each piece of memory should live on.

Example: nmap plan trace.db -o plan.json, then nlaunch --plan plan.json ./app.
"""

# What only the network scanner of the same name knows: scan types, ports, timing, addresses, networks.
_SCANNER = re.compile(
    r"-s[STUACVNFXMWIOPLRYZn]|-p(\d.*|-|)|-P[nSAUYEPMOR]\d*|-[AFOR6]|-T[0-5]|-i[LR]|-o[NXGAS]|-v{2,}"
    r"|--(script|open|top-ports|reason|traceroute|osscan-\w+|exclude)(=.*)?"
    r"|\d{1,3}(\.\d{1,3}){3}([/-]\d+)?|[0-9a-f]*:[0-9a-f:]+|localhost|[\w-]+(\.[\w-]+)*\.(com|org|net|io|de|edu|local)"
)


def is_scanner_call(words: Sequence[str]) -> bool:
    """Whether a command line was meant for the network scanner nmap."""
    return bool(words) and words[0] not in COMMANDS and any(_SCANNER.fullmatch(word) for word in words)


def main(words: Sequence[str] | None = None) -> int:
    """Entry point of `nmap`; words: those after its name, with which it returns the exit code."""
    if words is None:
        leave(main(sys.argv[1:]))
    if is_scanner_call(words):
        return fail(
            "nmap",
            "this is numaplan's nmap (thread and memory placement), not the network scanner —"
            " call the scanner by its full path, such as /usr/bin/nmap",
            2,
        )
    # Else numpy starts a thread a cpu for matrices larger than ours, which spin for a while as they wait.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # These it would set itself, and take away again, while the thread that opens a trace reads the
    # environment: that is undefined in C, and does crash.
    for name in ("OPENBLAS_MAIN_FREE", "GOTOBLAS_MAIN_FREE"):
        os.environ.setdefault(name, "1")
    return run_tool("nmap", ABOUT, COMMANDS, __package__, words)
