"""Which class of thread goes on which core: alternating layouts over memory domains ([DINO], 3.1, 3.3.3).

Both ends of the list sorted by memory intensity are assigned to the domains in turn, the intensive end
first. The text lets the other end start with the last domain, its worked example with the first; the
example is followed.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np

from ..observation import Ints, MachineView


def domain_slots(machine: MachineView, threads: int) -> list[list[int]]:
    """Rows of the open cpus of each domain; each cpu as often as it must hold threads: T = threads / cores,
    up.
    """
    per_core = max(1, -(-threads // max(1, int(machine.seats.sum()))))
    return [
        np.repeat(np.flatnonzero((machine.cpu_node == node) & machine.open_cpus), per_core).tolist()
        for node in machine.cpu_nodes.tolist()
    ]


def alternating_layout(order: Sequence[int], domains: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """(item, slot) for each item; order: most memory-intensive first; domains: free slots of each, in order.

    A slot that stands several times in a row in a domain (a core for T threads) takes so many items at once.
    """
    left = deque(order)
    free = [deque(slots) for slots in domains]
    placed: list[tuple[int, int]] = []
    intensive = True
    while left and any(free):
        for slots in free:
            _fill_one(left, slots, intensive, placed)
        intensive = not intensive
    return placed


def _fill_one(left: deque[int], slots: deque[int], intensive: bool, placed: list[tuple[int, int]]) -> None:
    """Items from one end on the next slot of a domain."""
    core = slots[0] if slots else -1
    while left and slots and slots[0] == core:
        item = left.popleft() if intensive else left.pop()
        placed.append((item, slots.popleft()))


def keep_in_place(cores: Ints, classes: Ints, order: Sequence[int], slots: Sequence[tuple[int, int]]) -> Ints:
    """(n,) a core for each thread: where it is if that core's slot has its class, else the first slot that
    has.

    cores: (n,) where each thread is (-1: nowhere); classes: (n,); order: thread rows, most intensive first;
    slots: (core, class), as many of each class as there are threads of it. The example of [DINO], 3.3.3.
    """
    placement = np.full(len(cores), -1, dtype=np.int64)
    free: dict[int, list[int]] = {}
    for core, kind in sorted(slots):
        free.setdefault(kind, []).append(core)
    for thread in range(len(cores)):
        open_cores = free.get(int(classes[thread]), [])
        if int(cores[thread]) in open_cores:
            open_cores.remove(int(cores[thread]))
            placement[thread] = cores[thread]
    for thread in order:
        if placement[thread] < 0:
            placement[thread] = free[int(classes[thread])].pop(0)
    return placement


def gather_processes(placement: Ints, classes: Ints, process: Ints, core_node: Ints) -> Ints:
    """The placement with threads of one process brought to one domain by swaps within a class.

    For each thread A in core order: a later thread B of its process in another domain changes places with a
    thread C of another process, of B's class, in A's domain.
    """
    result = placement.copy()
    order = np.argsort(result, kind="stable")
    for position in range(len(order)):
        first = order[position]
        domain = core_node[result[first]]
        strangers = np.flatnonzero((core_node[result] == domain) & (process != process[first]))
        later = order[position + 1 :]
        kin = later[(process[later] == process[first]) & (core_node[result[later]] != domain)]
        for second in kin.tolist():
            fits = strangers[classes[strangers] == classes[second]]
            if not len(fits):
                continue
            third = int(fits[np.argmin(result[fits])])
            result[second], result[third] = result[third], result[second]
            strangers = strangers[strangers != third]
            a, b = (int(np.flatnonzero(order == thread)[0]) for thread in (second, third))
            order[a], order[b] = order[b], order[a]
    return result
