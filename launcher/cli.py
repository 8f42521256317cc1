"""`nlaunch`: plain command lines are read here, at once; all others (help, misuse) by cli_full.py.

The command line library takes longer to load than all else that comes before the program's start.
"""

import sys

from numaplan.common.frame import run_framed
from numaplan.launcher.launch import LaunchRequest, launch_program

# option -> (field of LaunchRequest, value it stands for; None: the next word is the value)
OPTIONS: dict[str, tuple[str, bool | None]] = {
    "--plan": ("plan_path", None),
    "--report": ("report_path", None),
    "--remap": ("remap", True),
    "--strict": ("strict", True),
    "--override": ("override", True),
    "--respect-app": ("override", False),
    "--quiet": ("quiet", True),
    "-q": ("quiet", True),
}


def quick_request(words: list[str]) -> LaunchRequest | None:
    """The request of a command line that has only these options; None when cli_full.py should read it."""
    fields: dict[str, str | bool] = {}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name, equals, value = words[at].partition("=")
        if name not in OPTIONS:
            return None
        field, meaning = OPTIONS[name]
        at += 1
        if meaning is None and not equals:
            if at == len(words):
                return None
            value = words[at]
            at += 1
        elif meaning is not None and equals:
            return None
        fields[field] = value if meaning is None else meaning
    argv = words[at + 1 :] if words[at : at + 1] == ["--"] else words[at:]
    if not argv or "plan_path" not in fields:
        return None
    return LaunchRequest(argv, **fields)  # type: ignore[arg-type]


def main() -> None:
    """Entry point of the command."""
    request = quick_request(sys.argv[1:])
    if request is not None:
        sys.exit(run_framed(lambda: launch_program(request), "nlaunch"))
    from numaplan.launcher.cli_full import main as read_all

    read_all()
