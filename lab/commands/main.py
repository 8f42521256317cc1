"""`nlab`: run programs on a virtual NUMA machine and count every local and remote access."""

from collections.abc import Sequence

from numaplan.common import run_tool

COMMANDS = {
    "setup": "setup:SetupCommand",
    "doctor": "setup:DoctorCommand",
    "run": "run:RunCommand",
    "compare": "compare:CompareCommand",
    "cluster": "cluster:ClusterCommand",
}
ABOUT = """Boot a real kernel with as many NUMA nodes as asked for, run a program in it, and count which cpu
touched memory of which node. No NUMA hardware, no root and no /dev/kvm needed.

Example: nlab setup && nlab run --machine 4x2 -- ./app
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `nlab`; returns the exit code."""
    return run_tool("nlab", ABOUT, COMMANDS, __package__, arguments)
