"""The command `nprof`: record a program, show what was recorded, export it."""

from collections.abc import Sequence

from numaplan.common import run_tool

COMMANDS = {
    "record": "record:RecordCommand",
    "import": "import_:ImportCommand",
    "info": "trace:InfoCommand",
    "export": "trace:ExportCommand",
    "doctor": "doctor:DoctorCommand",
    "setup": "setup:SetupCommand",
}
ABOUT = """Record which thread of a program touches which memory.

Example: nprof record -o trace.db ./app, then nmap plan trace.db.
"""


def main(words: Sequence[str] | None = None) -> int:
    """Entry point of `nprof`; returns the exit code."""
    return run_tool("nprof", ABOUT, COMMANDS, __package__, words)
