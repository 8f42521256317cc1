"""The plan for what is about to run: whatever is wrong with the store, there is an answer."""

import os

import msgspec

from numaplan.common import is_asked_to_end
from numaplan.mapper import (
    Found,
    Plan,
    PlanStore,
    ProgramKey,
    Use,
    open_store,
    program_key,
    store_address,
)

from ..enforce.container import fit_to_container
from ..enforce.plan_fit import is_part_of, misfits
from ..launch.request import Target
from ..verify.applied import Applied
from .options import AutoOptions


class Known(msgspec.Struct, frozen=True):
    """What runs here, and where its plan belongs."""

    target: Target
    store: PlanStore
    key: ProgramKey

    @property
    def parts(self) -> tuple[str, str, str]:
        """The plan's place in the store."""
        return self.store.parts(self.key, self.target.machine)

    @property
    def where(self) -> str:
        """The same for people."""
        return self.store.where(self.parts)


class Search(msgspec.Struct, frozen=True):
    """What came of it. problem: why nothing could be looked up, known is None then."""

    found: Found
    known: Known | None = None
    problem: str = ""

    @staticmethod
    def failed(problem: str) -> "Search":
        """Nothing could be looked up."""
        return Search(Found(None), problem=" ".join(problem.split()))

    @property
    def is_own(self) -> bool:
        """Whether the plan is of the run's own class: for this machine, or for all of a container's host."""
        stored, known = self.found.stored, self.known
        if stored is None or known is None:
            return False
        fitted = bool(fitted_here(stored.plan, known.target)[1])
        return self.found.exact or (fitted and stored.parts[2] == known.parts[2])

    @property
    def reason(self) -> str:
        """Why there is no plan, in a line."""
        if self.known is None:
            return f"no plan: {self.problem}"
        if self.found.skipped:
            more = len(self.found.skipped) - 1
            return f"plan skipped: {self.found.skipped[0]}" + (f" (and {more} more)" if more else "")
        return f"no plan for this run in {self.known.store.place.label}"


def search(options: AutoOptions, argv: list[str], target: Target) -> Search:
    """Look the plan up. No error of the store is one of the program's, not even of ours."""
    try:
        store = open_store(
            store_address(options.store, target.environment), options.signers, options.sign_with
        )
        key = program_key(argv, target.environment, options.class_name)

        def fits(plan: Plan, _where: str) -> str:
            plan, _ = fitted_here(plan, target)
            return "; ".join(misfits(plan, target.machine, target.program, target.facts))

        return Search(store.find(key, target.machine, fits), Known(target, store, key))
    except Exception as error:
        if os.environ.get("NUMAPLAN_DEBUG"):
            raise
        if is_asked_to_end():
            raise KeyboardInterrupt from error
        return Search.failed(str(error) or type(error).__name__)


def fitted_here(plan: Plan, target: Target) -> tuple[Plan, str]:
    """In a container, whose machine is a part of its host's: a plan for the host, and a line that says so."""
    if not is_part_of(target.machine, plan):
        return plan, ""
    return fit_to_container(plan, target.machine, target.environment)


def use_of(applied: Applied) -> Use | None:
    """What to note of a run beside its plan; None where it says nothing: it failed, or was not seen."""
    seen = applied.unplanned_count or any(thread.applied for thread in applied.threads)
    if applied.exit_code or not (seen or not applied.threads):
        return None
    as_planned = sum(set(thread.planned) == set(thread.applied) for thread in applied.threads)
    appeared = sum(region.appeared for region in applied.memory)
    threads_gone = 2 * len(applied.missing) > len(applied.threads)
    memory_gone = 2 * appeared < len(applied.memory) and applied.memory_bytes > 0
    return Use(
        (as_planned, len(applied.threads)),
        (appeared, len(applied.memory)),
        not (threads_gone or memory_gone),
        applied.summary,
    )
