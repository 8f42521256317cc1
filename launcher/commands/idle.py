"""Options that would do nothing with the others that were given: they are refused, not dropped."""

from collections.abc import Mapping

from numaplan.common import UsageError

_OF_A_PLAN = (
    "report",
    "remap",
    "strict",
    "unplanned",
    "override",
    "autonuma",
    "by",
    "watch",
    "match",
    "match_trace",
)
_OF_A_POLICY = ("settings", "budget", "overhead", "sampler", "journal", "save")
_OF_A_STORE = ("store", "run_class", "signers", "sign")
_OF_A_FIRST_RUN = ("backend", "record_for")
_FLAGS = {"settings": "--set", "run_class": "--class"}


def refuse_idle_options(given: Mapping[str, object], usual: Mapping[str, object]) -> None:
    """Raise UsageError when an option was given that needs another which was not, or suits no other.

    given, usual: nlaunch's options by the name of their field, and what they are when nothing is given.
    """

    def refuse(names: tuple[str, ...], when: str, fix: str) -> None:
        for name in names:
            if given[name] != usual[name]:
                flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
                raise UsageError(f"{flag} does nothing {when}", fix)

    attached = "--attach" if given["attach"] else "--all-mine" if given["all_mine"] else ""
    if attached:
        refuse(("plan", "job", "auto", *_OF_A_PLAN, "match_seconds"), f"with {attached}", "leave it out")
        if given["all_mine"]:
            refuse(("attach",), "with --all-mine", "give one of them")
    elif given["auto"]:
        refuse(("plan", "job", "online", "remap"), "with --auto", "leave it out")
    elif not (given["plan"] or given["job"]):
        refuse((*_OF_A_PLAN, "match_seconds"), "without a plan", "add --plan PLAN.JSON")
    if not attached and not (given["match"] or given["match_trace"]):
        refuse(("match_seconds",), "without --match", "add it")
    if given["job"]:
        refuse(("plan",), "with --job", "give one of them")
        refuse(("save",), "with --job: the ranks would all write the same file", "leave it out")
    if not given["auto"]:
        refuse(_OF_A_STORE, "without --auto", "add it")
    if given["auto"] != "record":
        refuse(_OF_A_FIRST_RUN, "without --auto=record", "add it")
    if not given["online"]:
        refuse(_OF_A_POLICY, "without a policy", "add for example --online numaplan")
