"""The advice about several traces as one list: runs of one program, or ranks of a job."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from numaplan.analyzer import Advice, Advised, Change

MOST_TRACES = 16  # whose advice is asked for: each takes as long as the first
OF_ALL = ("plan", "bind", "interleave", "threads")
_NUMBER = re.compile(r"\d+")


def merged(found: Sequence[Advised]) -> Advised:
    """What was advised of any trace, with the mean gain over all: none where a trace has not got the advice.

    Advice is the same if it says the same but for numbers.
    """
    if len(found) == 1:
        return found[0]
    groups: dict[tuple[str, str], list[Advice]] = {}
    for advised in found:
        own = {_key(one): one for one in reversed(advised.advice)}
        for key, one in own.items():
            groups.setdefault(key, []).append(one)
    listed = sorted(
        (_mean(group, len(found)) for group in groups.values()),
        key=lambda one: (one.gain_ns is None, -(one.gain_ns or 0.0)),
    )
    reasons = list(dict.fromkeys(one.reason for one in found if one.reason))
    told = reasons if all(one.reason for one in found) or not listed else []
    return Advised(tuple(listed), "; ".join(told))


def _key(advice: Advice) -> tuple[str, str]:
    """What tells one advice from another; some there are once for a program."""
    return advice.kind, "" if advice.kind in OF_ALL else _NUMBER.sub("#", advice.action)


def _mean(group: Sequence[Advice], traces: int) -> Advice:
    first = max(group, key=lambda one: one.gain_ns or 0.0)
    seen = f" (so in {f'{len(group)} of' if len(group) < traces else 'all'} {traces} traces)"
    known = [one for one in group if one.gain_ns is not None and one.gain is not None]
    return replace(
        first,
        evidence=first.evidence + seen,
        gain_ns=round(sum(one.gain_ns or 0.0 for one in known) / traces) if known else None,
        gain=round(sum(one.gain or 0.0 for one in known) / traces, 4) if known else None,
        local_share=_change([one.local_share for one in group]),
        memory_share=_change([one.memory_share for one in group]),
    )


def _change(shares: Sequence[Change | None]) -> Change | None:
    """The mean of those that are known."""
    known = [share for share in shares if share is not None]
    if not known:
        return None
    before = sum(share.before for share in known) / len(known)
    return Change(round(before, 4), round(sum(share.after for share in known) / len(known), 4))
