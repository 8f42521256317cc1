"""Policies by their names on the command line."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from numaplan.common import UsageError, read_assignments

from .policies.parameters import parameter_names, with_settings

if TYPE_CHECKING:  # the names alone are quick to have, for a help text
    from .actions import Policy

NEXT_TOUCH = "next-touch"


class Entry(NamedTuple):
    """One policy: its module, loaded when asked for, its class there, what it does and where it is from."""

    module: Callable[[], ModuleType]
    factory: str
    about: str
    source: str

    def make(self) -> Any:
        """The policy with its defaults."""
        return getattr(self.module(), self.factory)()


def _imar() -> ModuleType:
    from .policies import imar

    return imar


def _lmma() -> ModuleType:
    from .policies import lmma

    return lmma


def _intensity() -> ModuleType:
    from .policies import intensity

    return intensity


def _dino() -> ModuleType:
    from .policies import dino

    return dino


def _balancing() -> ModuleType:
    from .policies import balancing

    return balancing


def _numaplan() -> ModuleType:
    from .policies.numaplan import policy

    return policy


POLICIES: dict[str, Entry] = {
    "nimar": Entry(_imar, "Nimar", "move the worst performing threads to better nodes", "[IMAR]"),
    "cimar": Entry(_imar, "Cimar", "the same, to single cores", "[IMAR]"),
    "lmma": Entry(_lmma, "Lmma", "move pages of high latency to their users, away from busy nodes", "[IMAR]"),
    "di-plain": Entry(_intensity, "DiPlain", "spread threads by miss rate; memory stays", "[DINO]"),
    "di-migrate": Entry(_intensity, "DiMigrate", "the same, and memory follows its thread", "[DINO]"),
    "dino": Entry(
        _dino, "Dino", "spread threads by class of miss rate, with as few moves as possible", "[DINO]"
    ),
    "first-fit": Entry(_balancing, "FirstFit", "balance nodes with the first thread in the queue", "[EXCL]"),
    "tm": Entry(_balancing, "TotalMin", "balance with the thread of least memory", "[EXCL]"),
    "mb": Entry(_balancing, "MostBenefit", "balance with the thread that gains most local pages", "[EXCL]"),
    "bce": Entry(_balancing, "BestCost", "the same, relative to the pages it leaves", "[EXCL]"),
    "mb+": Entry(_balancing, "MostBenefitPlus", "mb, keeping threads near their group's leader", "[EXCL]"),
    "excl-base": Entry(
        _balancing, "ExclBase", "balance with the thread of the least exclusive group", "[EXCL]"
    ),
    "excl": Entry(_balancing, "Excl", "the same, keeping threads near their group's leader", "[EXCL]"),
    "numaplan": Entry(
        _numaplan, "Numaplan", "solve the mapping again, move when it pays back", "this project"
    ),
}
COMBINED = {"nimar+lmma": ("nimar", "lmma"), "cimar+lmma": ("cimar", "lmma")}


def policy_names() -> list[str]:
    """Every name, without the `+next-touch` variants."""
    return [*POLICIES, *COMBINED]


def make_policy(name: str, settings: Sequence[str] = ()) -> "Policy":
    """The policy of that name, with `--set` settings such as "delta_perf=0.7" or "T=2".

    Raises UsageError for an unknown name, a parameter the policy has not, or a value out of its range.
    """
    base, with_touch = (
        (name[: -len(NEXT_TOUCH) - 1], True) if name.endswith(f"+{NEXT_TOUCH}") else (name, False)
    )
    if base not in POLICIES and base not in COMBINED:
        known = ", ".join(policy_names())
        raise UsageError(f"no policy {name!r}", f"take one of {known}, each also with +{NEXT_TOUCH}")
    parts = [POLICIES[part].make() for part in COMBINED.get(base, (base,))]
    if with_touch:
        from .policies.next_touch import NextTouch

        parts.append(NextTouch())
    return _assemble(_configured(parts, settings), with_touch)


def _configured(parts: list[Any], settings: Sequence[str]) -> list[Any]:
    wanted = read_assignments("--set", settings, "delta_perf=0.7")
    done: set[str] = set()
    result = []
    for part in parts:
        changed, used = with_settings(part, wanted)
        result.append(changed)
        done |= used
    for name in wanted.keys() - done:
        known = ", ".join(dict.fromkeys(key for part in parts for key in parameter_names(part)))
        raise UsageError(f"the policy has no parameter {name!r}", f"it has {known}")
    return result


def _assemble(parts: list[Any], with_touch: bool) -> "Policy":
    from .policies.combined import Combined, Followed

    mover = parts[:-1] if with_touch else parts
    policy: Policy = mover[0] if len(mover) == 1 else Combined(tuple(mover))
    return Followed(policy, parts[-1]) if with_touch else policy
