"""What the objective `time` chooses from, and whether the best of it is worth having."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from numaplan.analyzer import in_time

from ...threads.problem import Floats, Nodes, node_sizes
from ...workload.real_time import REASON
from ..cost.placement import Placement
from ..cost.timed_task import TimedTask
from ..cost.unplanned import alone
from .doubt import doubt
from .improving import improved
from .moving import moved
from .order import cheapest_first

NEAR = 2  # of the cheapest, that are tried to be improved
MOVED = 6  # of the cheapest, whose threads are tried to be moved
SIZES = 32  # numbers of places that are tried, of a machine with many
FEWER = 0.85  # of the cpus that threads would have use for, up to which it is tried to give them fewer
# What names end with where regions are left that lose next to nothing by it, or of which more is local then.
FEW, PARTLY = ", few placed", ", partly first touch"
ROUNDED = 1e-9  # of the cost, that sums of equal parts differ by


@dataclass(frozen=True)
class Choice:
    """chosen: what to do; tried: all that was, cheapest first; alone: what the kernel would do with no plan;
    doubt: ns by which the gain may be off; reason: why nothing should be placed, but that threads may have to
    keep to the cpus which options leave; empty: the plan is worth having."""

    chosen: Placement
    tried: tuple[Placement, ...]
    alone: Placement
    doubt: float
    reason: str = ""

    @property
    def gain(self) -> float:
        """ns that the placement should save of what the program costs without it."""
        return self.alone.cost.total_ns - self.chosen.cost.total_ns


def choose(task: TimedTask, method: str = "best", whole: TimedTask | None = None) -> Choice:
    """The cheapest placement; that nothing is placed, where none is expected to be cheaper than the kernel's.

    A method other than `best` gives the threads' places, and the choice is among the places of pages. Threads
    keep to cpus of their own where there is one place only: there is nothing to choose. whole: the task as it
    runs without a plan, where options or pins ask for something.
    """
    return judged(task, tried(task, method), method, whole)


def judged(
    task: TimedTask, placements: Sequence[Placement], method: str = "best", whole: TimedTask | None = None
) -> Choice:
    """The same of placements that have a cost already."""
    answer = _within(task, placements, method)
    if whole is None or whole is task:
        return answer
    usual = alone(whole)  # elsewhere, too: what was chosen from has the cpus that are left
    return replace(answer, alone=usual, doubt=_unsure(task, usual, answer.chosen))


def _within(task: TimedTask, placements: Sequence[Placement], method: str) -> Choice:
    """Against the kernel's on the cpus that the task may use."""
    usual = alone(task)
    answer = _first(task, cheapest_first(task, placements), usual)
    asked = method != "best" or task.problem.fixed is not None
    if task.in_real_time and not asked:
        return replace(answer, chosen=usual, reason=REASON)
    if asked or len(task.rows) == 1 or answer.gain > answer.doubt:
        return answer
    # Siblings in turn may cost more, and nothing may be left to gain.
    cheapest = _first(task, cheapest_first(task, placements, in_turn=False), usual)
    return (
        cheapest
        if cheapest.gain > cheapest.doubt
        else replace(cheapest, chosen=usual, reason=_reason(cheapest))
    )


def _first(task: TimedTask, found: Sequence[Placement], usual: Placement) -> Choice:
    return Choice(found[0], tuple(found), usual, _unsure(task, usual, found[0]))


def _unsure(task: TimedTask, usual: Placement, found: Placement) -> float:
    return max(doubt(task, usual, found), ROUNDED * usual.cost.total_ns)


def tried(task: TimedTask, method: str = "best") -> list[Placement]:
    """All that is tried, cheapest first; the first also with siblings in turn, with no pages placed, and
    without regions that lose next to nothing where they are touched first."""
    found = cheapest_first(task, _of_all(task) if method == "best" else _of_method(task, method))
    if method == "best" and (others := in_turn(task, found)):
        found = cheapest_first(task, found + others)
    if others := _with_fewer_pages(task, found):
        found = cheapest_first(task, found + others)
    return found


def in_turn(task: TimedTask, found: Sequence[Placement]) -> list[Placement]:
    """The first one's places, with siblings that do alike in turn on theirs: children, threads that one made,
    and both; pages are found in its way."""
    first, answer = found[0], []
    seen = {first.places.tobytes()}
    for what, siblings in (
        ("children", task.children),
        ("threads", task.by_chance),
        ("all", [*task.children, *task.by_chance]),
    ):
        places = task.in_turn(siblings, first.places)
        if places.tobytes() in seen:
            continue
        seen.add(places.tobytes())
        if task.may_place_pages:
            answer.append(task.placed(f"{what} in turn", places, first.spread))
        answer.append(task.first_touched(f"{what} in turn, first touch", places))
    return answer


def _with_fewer_pages(task: TimedTask, found: Sequence[Placement]) -> list[Placement]:
    """The first one's threads with pages where they are touched first: all, if that was not tried, and those
    of regions that lose next to nothing by it."""
    first, fewer = found[0], []
    if first.pages is None or not task.may_leave_pages:
        return []
    if not any(one.pages is None and np.array_equal(one.places, first.places) for one in found):
        fewer.append(task.first_touched(f"{first.name}, first touch", first.places))
    rows, nodes = task.rows[first.places], len(task.machine.nodes)
    left = task.pages.as_good_touched(first.pages.tables, rows, nodes)
    if left:
        few = task.without(first.name + FEW, first, left)
        fewer += [few] if few.pages and few.pages.tables else []
    return fewer


def _reason(found: Choice) -> str:
    before, after = in_time(found.alone.cost.total_ns, 3), in_time(found.chosen.cost.total_ns, 3)
    if found.gain <= 0:
        best = f"the best found costs {after} of waiting, the kernel's {before}"
        return f"no placement is expected to be better than the kernel's: {best}"
    return (
        f"the best placement found is expected to cost {after} of waiting, the kernel's {before}:"
        f" less apart than what is unsure about it ({in_time(found.doubt, 2)})"
    )


def _of_method(task: TimedTask, method: str) -> list[Placement]:
    places = task.mapped(method)
    placed = [task.placed(method, places)] if task.may_place_pages else []
    return [*placed, task.first_touched(f"{method}, first touch", places)]


def _of_all(task: TimedTask) -> list[Placement]:
    starts = _starts(task)
    touched = [task.first_touched(f"{name}, first touch", places) for name, places in starts.items()]
    spread = [name for name in ("compact", "scatter") if name in starts]
    touched += [task.placed(f"{name}, interleaved", starts[name], "all") for name in spread]
    found = _of_pages(task, starts) + touched if task.may_place_pages else touched
    return found + _moved(task, found)


def _of_pages(task: TimedTask, starts: dict[str, Nodes]) -> list[Placement]:
    """With regions where they are used most, and the cheapest of these improved."""
    found = [task.placed(name, places) for name, places in starts.items()]
    found.sort(key=lambda one: one.cost.total_ns)
    near = [one.name for one in found[:NEAR]]
    if task.pools:
        found += [task.placed(f"{name}, shared spread", starts[name], "shared") for name in near]
        whole = [one for one in found if one.name in near]
        found += [part for one in whole if (part := _partly(task, one))]
    else:
        found += [improved(task, f"{name}, improved", starts[name]) for name in near]
    return found


def _moved(task: TimedTask, found: Sequence[Placement]) -> list[Placement]:
    """The cheapest, with their threads moved one by one."""
    starts: dict[bytes, Placement] = {}
    for one in sorted(found, key=lambda one: one.cost.total_ns):
        if len(starts) < MOVED:
            starts.setdefault(one.places.tobytes(), one)
    return [better for one in starts.values() if (better := moved(task, one))]


def _partly(task: TimedTask, whole: Placement) -> Placement | None:
    """With pages placed, but for regions of which more is local where they are touched first: what threads of
    a pool share is another's in each run, but often that of who touches it first. None: there are none."""
    assert whole.pages is not None
    left = task.pages.better_touched(whole.pages.tables, task.rows[whole.places], len(task.machine.nodes))
    return task.without(whole.name + PARTLY, whole, left) if left else None


def _starts(task: TimedTask) -> dict[str, Nodes]:
    """Where threads may be, by name; each placement once."""
    methods = {name: task.mapped(name) for name in ("compact", "scatter", "best")}
    if task.seen_on and task.problem.fixed is None:
        methods["as recorded"] = task.places_on(task.seen_on)
    seen: set[bytes] = set()
    answer: dict[str, Nodes] = {}
    for name, found in {**methods, **_filled(task), **_as_they_run(task)}.items():
        wider = {f"{name}, wider": task.cpus.spread(found, wider=True)} if task.pools else {}
        for variant, places in {name: task.cpus.spread(found), **wider}.items():
            if places.tobytes() not in seen:
                seen.add(places.tobytes())
                answer[variant] = places
    return answer


def _filled(task: TimedTask) -> dict[str, Nodes]:
    """Threads on the nearest places, for every number of these that may have cpus for those that run at a
    time: in order of creation, and as they communicate least between them."""
    problem = task.problem
    seats = np.array([len(node.cpus) for node in task.domains.machine.nodes])
    what = "nodes" if len(seats) == len(task.usable.cpu_nodes) else "caches"
    # If it was seen who could run, it is known what they wait where cpus are too few.
    least = task.running * (FEWER if task.cpus.looked else 1.0)
    answers: dict[str, Nodes] = {}
    for size in _sizes(len(seats), problem.threads):
        near = nearest(problem.distances, seats, size)
        if seats[near].sum() < least or problem.fixed is not None:
            continue
        sizes = node_sizes(problem.threads, seats[near])
        answers[f"{size} {what} in order"] = near[_in_order(seats[near], problem.threads)]
        if size > 1:
            part = replace(
                problem,
                sizes=sizes,
                effort="fast",
                distances=problem.distances[np.ix_(near, near)],
                targets=problem.targets[near],
                groups=None if problem.groups is None else problem.groups[near],
            )
            answers[f"{size} {what}"] = near[task.mapped("best", part)]
    return answers


def _sizes(places: int, threads: int) -> list[int]:
    """How many places are tried, of so many: each number that threads can be on, of many those of a scale."""
    last = min(places - 1, threads)
    if last <= SIZES:
        return list(range(1, last + 1))
    found: list[int] = np.unique(np.geomspace(1, last, SIZES).round().astype(np.int64)).tolist()
    return found


def _as_they_run(task: TimedTask) -> dict[str, Nodes]:
    """Threads on one place after the other, by how many run at a time and not by how many there are."""
    return {} if task.problem.fixed is not None else {"as they run": task.cpus.filled()}


def nearest(distances: Floats, seats: Nodes, size: int) -> Nodes:
    """The places that are nearest to each other, of those with most cpus."""
    groups = [np.sort(np.lexsort((-seats, row))[:size]) for row in distances]
    inner = [float(distances[np.ix_(group, group)].sum()) for group in groups]
    most = [-int(seats[group].sum()) for group in groups]
    return groups[min(range(len(groups)), key=lambda number: (most[number], inner[number]))]


def _in_order(seats: Nodes, threads: int) -> Nodes:
    """(N,) one place filled after the other."""
    return np.repeat(np.arange(len(seats)), np.maximum(seats, node_sizes(threads, seats)))[:threads]
