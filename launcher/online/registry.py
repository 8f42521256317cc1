"""Policies by their names on the command line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from numaplan.common import UsageError
from numaplan.launcher.online.actions import Policy
from numaplan.launcher.online.policies.parameters import parameter_names, parse_settings, with_settings

NEXT_TOUCH = "next-touch"


@dataclass(frozen=True)
class Entry:
    """One policy: where it lives, what fixed fields make this variant, what it does and where it is from."""

    module: str
    factory: str
    about: str
    source: str
    fixed: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Any:
        """The policy with its defaults."""
        home = import_module(f"numaplan.launcher.online.policies.{self.module}")
        factory: Callable[..., Any] = getattr(home, self.factory)
        return factory(**self.fixed)


_CIMAR, _DINO, _EXCL = "cimar-nimar-lmma", "dino", "exclusivity"

POLICIES: dict[str, Entry] = {
    "nimar": Entry("imar", "Nimar", "move the worst performing threads to better nodes", _CIMAR),
    "cimar": Entry("imar", "Cimar", "the same, to single cores", _CIMAR),
    "lmma": Entry("lmma", "Lmma", "move pages of high latency to their users, away from busy nodes", _CIMAR),
    "di-plain": Entry("intensity", "DiPlain", "spread threads by miss rate; memory stays", _DINO),
    "di-migrate": Entry("intensity", "DiMigrate", "the same, and memory follows its thread", _DINO),
    "dino": Entry("dino", "Dino", "spread threads by class of miss rate, moving as few as can be", _DINO),
    "first-fit": Entry("balancing", "FirstFit", "balance nodes with the first thread in the queue", _EXCL),
    "tm": Entry("balancing", "TotalMin", "balance with the thread of least memory", _EXCL),
    "mb": Entry("balancing", "MostBenefit", "balance with the thread that gains most local pages", _EXCL),
    "bce": Entry("balancing", "BestCost", "the same, relative to the pages it leaves", _EXCL),
    "mb+": Entry("balancing", "MostBenefitPlus", "mb, keeping threads near their group's leader", _EXCL),
    "excl-base": Entry(
        "balancing", "ExclBase", "balance with the thread of the least exclusive group", _EXCL
    ),
    "excl": Entry("balancing", "Excl", "the same, keeping threads near their group's leader", _EXCL),
    "numaplan": Entry(
        "numaplan", "Numaplan", "solve the mapping again, move when that pays back", "this project"
    ),
}
COMBINED = {"nimar+lmma": ("nimar", "lmma"), "cimar+lmma": ("cimar", "lmma")}


def policy_names() -> list[str]:
    """Every name, without the `+next-touch` variants."""
    return [*POLICIES, *COMBINED]


def make_policy(name: str, settings: Sequence[str] = ()) -> Policy:
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
        parts.append(Entry("next_touch", "NextTouch", "", "").make())
    return _assemble(_configured(parts, settings), with_touch)


def _configured(parts: list[Any], settings: Sequence[str]) -> list[Any]:
    wanted = parse_settings(settings)
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


def _assemble(parts: list[Any], with_touch: bool) -> Policy:
    from numaplan.launcher.online.policies.combined import Combined, Followed

    mover = parts[:-1] if with_touch else parts
    policy: Policy = mover[0] if len(mover) == 1 else Combined(tuple(mover))
    return Followed(policy, parts[-1]) if with_touch else policy
