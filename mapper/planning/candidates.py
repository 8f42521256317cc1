"""What the objective `time` chooses from, and whether the best of it is worth having."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..threads.problem import Floats, Nodes, node_sizes
from .improving import improved
from .moving import moved
from .shares import local_shares
from .timed_task import Placement, TimedTask
from .unplanned import alone

NEAR = 2  # of the cheapest, that are tried to be improved
MOVED = 6  # of the cheapest, whose threads are tried to be moved
SIZES = 32  # numbers of nodes that are tried, of a machine with many
FEWER = 0.85  # of the cpus that threads would have use for, up to which it is tried to give them fewer
ROUNDED = 1e-9  # of the cost, that sums of equal parts differ by
EQUAL = 5e-3  # of the cost, up to which placements are equally cheap
NEARLY = 0.01  # of all accesses, that may be less local where threads are in order of creation
# Of all threads' time, that must be saved for such to share cpus as may poll: when threads run is known from
# their accesses.
CROWDED = 0.05
WARY = 0.3  # of what is waited for cpus, that it may be more: of the parts of a cost it is the least sure


@dataclass(frozen=True)
class Choice:
    """chosen: what to do; tried: all that was, cheapest first; alone: what the kernel would do; doubt: ns by
    which the gain may be off; reason: why nothing should be placed; empty: the plan is worth having."""

    chosen: Placement
    tried: tuple[Placement, ...]
    alone: Placement
    doubt: float
    reason: str = ""

    @property
    def gain(self) -> float:
        """ns that the placement should save of what the program costs without it."""
        return self.alone.cost.total_ns - self.chosen.cost.total_ns


def choose(task: TimedTask, method: str = "best") -> Choice:
    """The cheapest placement; that nothing is placed, where none is expected to be cheaper than the kernel's.

    A method other than `best` gives the threads' places, and the choice is among the places of pages. Threads
    keep to cpus of their own where there is one place only: there is nothing to choose.
    """
    return judged(task, tried(task, method), method)


def judged(task: TimedTask, placements: Sequence[Placement], method: str = "best") -> Choice:
    """The same of placements that have a cost already."""
    found, usual = _cheapest_first(task, placements), alone(task)
    doubt = max(task.doubt(usual, found[0]), ROUNDED * usual.cost.total_ns)
    answer = Choice(found[0], tuple(found), usual, doubt)
    asked = method != "best" or task.problem.fixed is not None
    if asked or len(task.rows) == 1 or answer.gain > doubt:
        return answer
    return replace(answer, chosen=usual, reason=_reason(answer))


def tried(task: TimedTask, method: str = "best") -> list[Placement]:
    """All that is tried, cheapest first, where what is waited for cpus counts more, as it is the least sure;
    of equally cheap ones first where threads wait least, and then what makes most accesses local, be they
    answered by a cache or not. One in order of creation goes first where that costs little: threads made one
    after another mostly belong together, also where one run does not show it."""
    return _cheapest_first(task, _of_all(task) if method == "best" else _of_method(task, method))


def _cheapest_first(task: TimedTask, every: Sequence[Placement]) -> list[Placement]:
    price = {
        one.name: one.cost.total_ns + WARY * one.cost.cpu_ns + CROWDED * _crowded(task, one) for one in every
    }
    found = sorted(every, key=lambda one: price[one.name])
    limit = price[found[0].name] * (1 + EQUAL)
    equal = [one for one in found if price[one.name] <= limit]
    local = {one.name: round(local_shares(task, one)[0], 3) for one in equal}
    equal.sort(key=lambda one: (_crowding(one), -local[one.name], one.pages is None))
    for at, one in enumerate(equal):
        as_near = _crowding(one) <= _crowding(equal[0]) and local[one.name] >= local[equal[0].name] - NEARLY
        if as_near and in_order_of_creation(one.places):
            equal.insert(0, equal.pop(at))
            break
    return equal + found[len(equal) :]


def in_order_of_creation(places: Nodes) -> bool:
    """Whether the threads of each place follow one another, and are on several."""
    turns = int(np.count_nonzero(np.diff(places)))
    return 0 < turns == len(np.unique(places)) - 1


def _crowding(one: Placement) -> float:
    """The share of the cost that is waiting for cpus, roughly."""
    return round(one.cost.cpu_ns / max(one.cost.total_ns, 1e-300), 3)


def _crowded(task: TimedTask, one: Placement) -> float:
    """The time of all threads, where a place may have fewer cpus than threads that run at a time; else 0."""
    return task.busy_ns(one) if task.cpus.crowded(one.places) else 0.0


def _reason(found: Choice) -> str:
    before, after = found.alone.cost.total_ns / 1e6, found.chosen.cost.total_ns / 1e6
    if found.gain <= 0:
        return (
            f"no placement is expected to be better than the kernel's: the best found costs {after:.3g} ms of"
            f" waiting, the kernel's {before:.3g}"
        )
    return (
        f"the best placement found is expected to cost {after:.3g} ms of waiting, the kernel's {before:.3g}:"
        f" less apart than what is unsure about it ({found.doubt / 1e6:.2g} ms)"
    )


def _of_method(task: TimedTask, method: str) -> list[Placement]:
    places = task.mapped(method)
    return [task.placed(method, places), task.first_touched(f"{method}, first touch", places)]


def _of_all(task: TimedTask) -> list[Placement]:
    starts = _starts(task)
    found = [task.placed(name, places) for name, places in starts.items()]
    found.sort(key=lambda one: one.cost.total_ns)
    near = [one.name for one in found[:NEAR]]
    found += [task.first_touched(f"{name}, first touch", places) for name, places in starts.items()]
    spread = [name for name in ("compact", "scatter") if name in starts]
    found += [task.placed(f"{name}, interleaved", starts[name], "all") for name in spread]
    if task.pools:
        found += [task.placed(f"{name}, shared spread", starts[name], "shared") for name in near]
        found += [part for name in near if (part := _partly(task, name, starts[name]))]
    else:
        found += [improved(task, f"{name}, improved", starts[name]) for name in near]
    return found + _moved(task, found)


def _moved(task: TimedTask, found: Sequence[Placement]) -> list[Placement]:
    """The cheapest, with their threads moved one by one."""
    starts: dict[bytes, Placement] = {}
    for one in sorted(found, key=lambda one: one.cost.total_ns):
        if len(starts) < MOVED:
            starts.setdefault(one.places.tobytes(), one)
    return [better for one in starts.values() if (better := moved(task, one))]


def _partly(task: TimedTask, name: str, places: Nodes) -> Placement | None:
    """With pages placed, but for regions of which more is local where they are touched first: what threads of
    a pool share is another's in each run, but often that of who touches it first. None: there are none."""
    whole = task.placed(name, places)
    assert whole.pages is not None
    left = task.pages.better_touched(whole.pages.tables, task.rows[whole.places], len(task.machine.nodes))
    return task.placed(f"{name}, partly first touch", places, left=left) if left else None


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
    # If it was seen who could run, it is known what they wait where cpus are too few.
    least = task.running * (FEWER if task.cpus.looked else 1.0)
    answers: dict[str, Nodes] = {}
    for size in _sizes(len(seats), problem.threads):
        near = nearest(problem.distances, seats, size)
        if seats[near].sum() < least or problem.fixed is not None:
            continue
        sizes = node_sizes(problem.threads, seats[near])
        answers[f"{size} nodes in order"] = near[_in_order(seats[near], problem.threads)]
        if size > 1:
            part = replace(
                problem,
                sizes=sizes,
                effort="fast",
                distances=problem.distances[np.ix_(near, near)],
                targets=problem.targets[near],
            )
            answers[f"{size} nodes"] = near[task.mapped("best", part)]
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
