"""Which of several placements comes first: the cheapest, and of those that are nearly as cheap the surest."""

from collections.abc import Sequence

import numpy as np

from ...memory.pages import PagePlan
from ...threads.problem import Nodes
from ..cost.placement import Placement
from ..cost.timed_task import TimedTask
from ..shares import local_shares

EQUAL = 5e-3  # of the cost, up to which placements are equally cheap
NEARLY = 0.01  # of all accesses, that may be less local where a placement is surer
IN_TURN = 0.1  # of the cost, that it may be more: which child has which number is chance
# Of the cost, that it may be more where threads have cpus of their own, and then are on fewer nodes: each
# emulated process counts its own time, so that those of several may run at once more than is seen.
ROOMY = 0.1
PLACING = 0.02  # of the cost, that it must save to place pages: moving costs, whose they are may be chance
# Of all threads' time, that must be saved for such to share cpus as may poll: when threads run is known from
# their accesses.
CROWDED = 0.05
# Of what would be waited for cpus if the kernel left each thread on one, that it may be more than expected:
# of the parts of a cost it is the least sure.
WARY = 0.3


def cheapest_first(task: TimedTask, every: Sequence[Placement], in_turn: bool = True) -> list[Placement]:
    """What is waited for cpus counts more, as it is the least sure; of equally cheap placements first comes
    where threads wait least, and then what makes most accesses local, be they answered by a cache or not. Of
    several emulated processes what gives more threads a cpu of their own goes before that, and then what is
    on fewer nodes, where it costs little. One in order of creation goes first where that costs little:
    threads made one after another mostly belong together, also where one run does not show it; but siblings
    whose numbers are chance are rather in turn (`in_turn`). And before one that places pages goes the same
    with fewer of them placed, where that costs little."""
    found = _roomy_first(task, sorted(every, key=lambda one: _price(task, one)))
    limit, first = _price(task, found[0]) * (1 + EQUAL), _room_and_nodes(task, found[0])
    equal = [one for one in found if _price(task, one) <= limit and _room_and_nodes(task, one) <= first]
    local = {id(one): round(local_shares(task, one)[0], 3) for one in equal}
    fewer = 1 if task.may_leave_pages else -1
    equal.sort(key=lambda one: (_crowding(one), -local[id(one)], fewer * (one.pages is not None)))
    for at, one in enumerate(equal):
        as_near = _crowding(one) <= _crowding(equal[0]) and local[id(one)] >= local[id(equal[0])] - NEARLY
        if as_near and in_order_of_creation(one.places):
            equal.insert(0, equal.pop(at))
            break
    found = equal + [one for one in found if all(one is not other for other in equal)]
    return _fewest_placed_first(task, _in_turn_first(task, found) if in_turn else found)


def _roomy_first(task: TimedTask, found: list[Placement]) -> list[Placement]:
    """Where nothing shows what processes exchange, in front those nearly as cheap as the first that leave the
    fewest threads without a cpu, and then are on the fewest nodes: near each other it costs less."""
    limit = _price(task, found[0]) * (1 + ROOMY)
    near = [one for one in found if _price(task, one) <= limit]
    near.sort(key=lambda one: _room_and_nodes(task, one))
    return near + found[len(near) :]


def _in_turn_first(task: TimedTask, found: list[Placement]) -> list[Placement]:
    """In front the first one's places with siblings that do alike in turn, where that costs little: children
    of a server, and threads that one made, where it costs nothing."""
    for siblings, most in ((task.children, IN_TURN), (task.by_chance, EQUAL)):
        first, places = found[0], task.in_turn(siblings, found[0].places)
        if np.array_equal(places, first.places):
            continue
        limit = _price(task, first) * (1 + most)
        turned = [one for one in found if np.array_equal(one.places, places) and _price(task, one) <= limit]
        found = [*turned[:1], *(one for one in found if one is not turned[0])] if turned else found
    return found


def _fewest_placed_first(task: TimedTask, found: list[Placement]) -> list[Placement]:
    """In front what places the fewest regions, each as the first does, of those that are nearly as good and
    have threads on the same places and cpus."""
    first = found[0]
    if first.pages is None or not task.may_leave_pages:
        return found
    limit, local = _price(task, first) * (1 + PLACING), local_shares(task, first)[0] - NEARLY
    alike = [
        (_placed(one), at)
        for at, one in enumerate(found)
        if one.cpus == first.cpus
        and _some_of(one.pages, first.pages)
        and np.array_equal(one.places, first.places)
        and _price(task, one) <= limit
        and local_shares(task, one)[0] >= local
    ]
    at = min(alike)[1]
    return [found[at], *found[:at], *found[at + 1 :]]


def _price(task: TimedTask, one: Placement) -> float:
    own = task.busy_ns(one) - one.cost.cpu_ns
    wary = WARY * task.cpus.dealt_waits(one.cpus) * own
    return one.cost.total_ns + wary + CROWDED * _crowded(task, one)


def _some_of(pages: PagePlan | None, whole: PagePlan) -> bool:
    """Whether some regions are placed as the whole places them, and no others."""
    return pages is None or all(whole.tables.get(number) is one for number, one in pages.tables.items())


def _placed(one: Placement) -> int:
    """How many regions have a place."""
    return len(one.pages.tables) if one.pages else 0


def in_order_of_creation(places: Nodes) -> bool:
    """Whether the threads of each place follow one another, and are on several."""
    turns = int(np.count_nonzero(np.diff(places)))
    return 0 < turns == len(np.unique(places)) - 1


def _room_and_nodes(task: TimedTask, one: Placement) -> tuple[int, int]:
    """How many threads have no cpu of their own, and how many nodes are used; where nothing shows which
    processes run at the same time, and what they exchange."""
    if not task.exchange_unseen:
        return 0, 0
    return task.cpus.without_cpu(one.places), len(np.unique(task.rows[one.places]))


def _crowding(one: Placement) -> float:
    """The share of the cost that is waiting for cpus, roughly."""
    return round(one.cost.cpu_ns / max(one.cost.total_ns, 1e-300), 3)


def _crowded(task: TimedTask, one: Placement) -> float:
    """The time of all threads, where a place may have fewer cpus than threads that run at a time; else 0."""
    return task.busy_ns(one) if task.cpus.crowded(one.places) else 0.0
