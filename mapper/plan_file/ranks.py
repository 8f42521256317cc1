"""Ranks of a job in the plan of one machine, which all of them must run on."""

import re

from .plan import Plan

_RANK = re.compile(r"r\d+")


def ranks_of(plan: Plan) -> set[str]:
    """The ranks that a plan has threads of, as `r3`."""
    return {root for thread in plan.threads if _RANK.fullmatch(root := thread.process.split(".")[0])}


def ranks_elsewhere(plan: Plan, here: int) -> str:
    """Why a plan is not for a job of which so many ranks run on this host (0: not known): ranks on others get
    cpus as if they were beside these. Empty when it is."""
    ranks = len(ranks_of(plan))
    return f"is for {ranks} ranks on one host; {here} run{'s' * (here == 1)} here" if 0 < here < ranks else ""
