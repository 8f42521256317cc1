"""Options that would do nothing with the others that were given: they are refused, not dropped."""

from typing import TYPE_CHECKING

import msgspec

from numaplan.common import UsageError

if TYPE_CHECKING:
    from .main import LaunchCommand

_OF_A_PLAN = ("report", "remap", "strict", "unplanned", "override", "by", "watch", "match", "match_trace")
_OF_A_POLICY = ("settings", "budget", "overhead", "sampler", "journal", "save")
_FLAGS = {"settings": "--set"}


def refuse_idle_options(command: "LaunchCommand") -> None:
    """Raise UsageError when an option was given that needs another which was not, or suits no other."""
    attached = "--attach" if command.attach else "--all-mine" if command.all_mine else ""
    if attached:
        _refuse(command, ("plan", *_OF_A_PLAN, "match_seconds"), f"with {attached}", "leave it out")
        if command.attach and command.all_mine:
            raise UsageError("--attach does nothing with --all-mine", "give one of them")
    elif not command.plan:
        _refuse(command, (*_OF_A_PLAN, "match_seconds"), "without a plan", "add --plan PLAN.JSON")
    elif not (command.match or command.match_trace):
        _refuse(command, ("match_seconds",), "without --match", "add it")
    if not command.online:
        _refuse(command, _OF_A_POLICY, "without a policy", "add for example --online numaplan")


def _refuse(command: "LaunchCommand", names: tuple[str, ...], when: str, fix: str) -> None:
    usual = {field.name: field.default for field in msgspec.structs.fields(command)}
    usual["settings"] = []
    for name in names:
        if getattr(command, name) != usual[name]:
            flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{flag} does nothing {when}", fix)
