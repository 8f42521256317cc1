"""`nlaunch`: plain command lines are read here, at once; all others (help, misuse) by cli_full.py.

The command line library takes longer to load than all else that comes before the program's start.
"""

import gc
import sys
from typing import TYPE_CHECKING, Any

from numaplan.common.frame import run_framed

if TYPE_CHECKING:
    from numaplan.launcher.launch import LaunchRequest
    from numaplan.launcher.online.command import OnlineWords

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
# The same of OnlineWords, for lines without a plan.
ONLINE: dict[str, tuple[str, bool | None]] = {
    "--online": ("policy", None),
    "--set": ("settings", None),  # the one that may come several times
    "--budget": ("budget", None),
    "--sampler": ("sampler", None),
    "--journal": ("journal", None),
    "--save": ("save", None),
    "--quiet": ("quiet", True),
    "-q": ("quiet", True),
}
_YOUNG = 50_000  # objects made before garbage is looked for; start-up makes many that all stay

Fields = dict[str, Any]


def quick_words(words: list[str], options: dict[str, tuple[str, bool | None]]) -> tuple[Fields, list[str]]:
    """What a command line with only these options says, and the program's words; none: cli_full.py's."""
    fields: Fields = {}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name, equals, value = words[at].partition("=")
        if name not in options:
            return {}, []
        field, meaning = options[name]
        at += 1
        if meaning is None and not equals:
            if at == len(words):
                return {}, []
            value = words[at]
            at += 1
        elif meaning is not None and equals:
            return {}, []
        said = value if meaning is None else meaning
        fields[field] = (*fields.get(field, ()), said) if field == "settings" else said
    return fields, words[at + 1 :] if words[at : at + 1] == ["--"] else words[at:]


def quick_request(words: list[str]) -> "LaunchRequest | None":
    """The request of a plain command line with a plan."""
    fields, argv = quick_words(words, OPTIONS)
    if not argv or "plan_path" not in fields:
        return None
    from numaplan.launcher.launch import LaunchRequest

    return LaunchRequest(argv, **fields)


def quick_online(words: list[str]) -> "tuple[OnlineWords, list[str]] | None":
    """What a plain command line with a policy and no plan says, and the program's words."""
    fields, argv = quick_words(words, ONLINE)
    if not argv or not fields.get("policy"):
        return None
    from numaplan.launcher.online.command import OnlineWords

    return OnlineWords(**fields), argv


def _launch(request: "LaunchRequest") -> int:
    from numaplan.launcher.launch import launch_program

    return launch_program(request)


def _online(words: "OnlineWords", argv: list[str]) -> int:
    from numaplan.launcher.online.command import run_online

    return run_online(words, argv)


def main() -> None:
    """Entry point of the command."""
    gc.set_threshold(_YOUNG)
    words = sys.argv[1:]
    if (request := quick_request(words)) is not None:
        sys.exit(run_framed(lambda: _launch(request), "nlaunch"))
    if (online := quick_online(words)) is not None:
        sys.exit(run_framed(lambda: _online(*online), "nlaunch"))
    from numaplan.launcher.cli_full import main as read_all

    read_all()
