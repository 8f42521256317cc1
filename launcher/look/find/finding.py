"""A finding: what is wrong, how one can tell, what it costs, and what mends it."""

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """name: stable, for programs; what: one line; cost: measured, or what it may be; cure: commands to type.

    weight: how much it matters among others, about the share of the processes' time that is at stake.
    """

    name: str
    what: str
    evidence: tuple[str, ...]
    cost: str
    measured: bool = False
    cure: tuple[str, ...]
    pids: tuple[int, ...] = ()
    weight: float = 0.0
