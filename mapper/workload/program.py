"""Whether two recordings are of one program."""

from collections.abc import Mapping

import msgspec

from numaplan.common import BAD_JSON, other_script

from .workload import Workload


def other_program(first: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two traces' facts (`build_id`, else `executable`; `argv` of an interpreter's script) are of
    different programs; not if unknown."""
    ran = [facts.get("executable", "") for facts in (first, other)]
    if other_script(_argv(first), _argv(other), ran):
        return True
    for fact in ("build_id", "executable"):
        one, two = first.get(fact, ""), other.get(fact, "")
        if one and two:
            return one != two
    return False


def program_facts(workload: Workload) -> dict[str, str]:
    """The same of a workload of a trace."""
    argv = msgspec.json.encode(workload.argv).decode()
    return {"build_id": workload.build_id, "executable": workload.executable, "argv": argv}


def _argv(facts: Mapping[str, str]) -> list[str]:
    try:
        return msgspec.json.decode(facts.get("argv", "[]"), type=list[str])
    except BAD_JSON:
        return []
