"""Threads that wait for a cpu while others idle: affinity that fights."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from numaplan.machine import format_list

from .finding import Finding
from .view import BusyThread, View, Work
from .words import cpus, listed, named, percent, some

WAITING = 0.15  # of the time that threads wanted to run, they waited


def _waiting(threads: Iterable[BusyThread]) -> float:
    threads = list(threads)
    return sum(one.waited for one in threads) / max(1e-9, sum(one.demand for one in threads))


def _cost(threads: Iterable[BusyThread]) -> str:
    return f"these threads waited for a cpu {percent(_waiting(threads))} of the time that they wanted to run"


def _by_mask(view: View) -> dict[tuple[int, ...], list[BusyThread]]:
    """Busy threads by the cpus that they may use, where others idle and not all fit."""
    found: dict[tuple[int, ...], list[BusyThread]] = defaultdict(list)
    for thread in view.busy:
        found[thread.thread.cpus].append(thread)
    return {
        mask: threads
        for mask, threads in found.items()
        if mask and len(threads) > len(mask) and view.idle_cpus - set(mask) and _waiting(threads) >= WAITING
    }


def _work(view: View, pid: int) -> Work:
    return next(work for work in view.works if work.process.pid == pid)


def _towards(view: View, pid: int, mask: tuple[int, ...]) -> int:
    """The node where a process's memory is; without much of it, where its threads are."""
    work = _work(view, pid)
    if work.bytes > view.cache_bytes:
        return max(work.memory, key=lambda node: work.memory[node])
    return view.nodes_of(mask)[0]


def _allowed(view: View, pid: int) -> set[int]:
    """What taskset may give a process: its cgroup's cpus."""
    return set(_work(view, pid).process.cpuset or view.machine.cpus)


def too_few_cpus(view: View) -> Iterator[Finding]:
    """One process has more busy threads than cpus that it may use, and others idle."""
    for mask, threads in _by_mask(view).items():
        pids = {thread.pid for thread in threads}
        if len(pids) > 1 or _others_elsewhere(view, threads):
            continue
        (pid,) = pids
        work = _work(view, pid)
        free = view.nearest(view.idle_cpus - set(mask), _towards(view, pid, mask))
        wanted = sorted({*mask, *free[: len(threads) - len(mask)]})
        if set(wanted) <= _allowed(view, pid):
            cure, whose = f"taskset -acp {format_list(wanted)} {pid}", "its affinity"
        else:
            from .cgroups import allow

            cure, whose = allow(work.process, "cpus", wanted), f"the cpuset of {work.process.cgroup}"
        yield Finding(
            name="too-few-cpus",
            what=f"{named(work)}: {len(threads)} busy threads may use only {cpus(mask)}",
            evidence=(f"by {whose}", f"{cpus(view.idle_cpus)} did next to nothing"),
            cost=_cost(threads),
            measured=True,
            cure=(cure,),
            pids=(pid,),
            weight=sum(thread.waited for thread in threads),
        )


def _others_elsewhere(view: View, threads: list[BusyThread]) -> bool:
    """Whether a process has busy threads with other masks: then each was bound by itself."""
    mask, pid = threads[0].thread.cpus, threads[0].pid
    return any(other.thread.cpus != mask for other in _work(view, pid).threads)


def pinned_together(view: View) -> Iterator[Finding]:
    """Threads of one process were bound one by one, several to the same cpu."""
    given: set[int] = set()  # cpus that another finding has taken
    for mask, threads in _by_mask(view).items():
        pids = {thread.pid for thread in threads}
        if len(pids) > 1 or not _others_elsewhere(view, threads):
            continue
        (pid,) = pids
        usable = view.idle_cpus & _allowed(view, pid)
        free = view.nearest(usable - given or usable, view.nodes_of(mask)[0])
        moved = threads[len(mask) :]
        given.update(free[: len(moved)])
        cure = [f"taskset -cp {cpu} {one.thread.tid}" for one, cpu in zip(moved, free, strict=False)]
        yield Finding(
            name="pinned-together",
            what=f"{named(_work(view, pid))}: {len(threads)} busy threads are bound to {cpus(mask)}",
            evidence=(
                f"threads {some(one.thread.tid for one in threads)}",
                f"{cpus(view.idle_cpus)} did next to nothing",
            ),
            cost=_cost(threads),
            measured=True,
            cure=tuple(cure),
            pids=(pid,),
            weight=sum(thread.waited for thread in threads),
        )


def everything_on_one_node(view: View) -> Iterator[Finding]:
    """Several processes share the cpus of one node, and there is too little of it; other nodes idle."""
    for mask, threads in _by_mask(view).items():
        pids = sorted({thread.pid for thread in threads})
        nodes = view.nodes_of(mask)
        idle = [
            node.id
            for node in view.machine.cpu_nodes
            if node.id not in nodes and view.idle_cpus.issuperset(node.cpus)
        ]
        if len(pids) < 2 or len(mask) < 2 or len(nodes) != 1 or not idle:
            continue
        yield Finding(
            name="everything-on-one-node",
            what=f"{len(pids)} processes with {len(threads)} busy threads are all on {listed(nodes)}",
            evidence=(
                f"all may use only {cpus(mask)}: {some(named(_work(view, pid)) for pid in pids)}",
                f"{listed(idle)} idle",
            ),
            cost=_cost(threads),
            measured=True,
            cure=tuple(_dealt(view, pids, nodes[0], idle)),
            pids=tuple(pids),
            weight=sum(thread.waited for thread in threads),
        )


def _dealt(view: View, pids: list[int], node: int, idle: list[int]) -> Iterator[str]:
    """Each process in turn to a node, with its memory; the first stay."""
    targets = [node, *idle]
    for place, pid in enumerate(pids):
        target = targets[place * len(targets) // len(pids)] if len(pids) > len(targets) else targets[place]
        if target != node:
            yield f"taskset -acp {format_list(view.cpus_of(target))} {pid}"
            yield f"migratepages {pid} {node} {target}"


def programs_on_one_cpu(view: View) -> Iterator[Finding]:
    """Two programs are bound to one cpu, which neither knows of the other, and others idle."""
    for mask, threads in _by_mask(view).items():
        pids = sorted({thread.pid for thread in threads})
        if len(pids) > 1 and len(mask) == 1:
            here = view.nodes_of(mask)[0]
            moved = [pid for pid in pids if _towards(view, pid, mask) != here] or pids[1:]
            names = [named(_work(view, pid)) for pid in pids]
            yield _shared(view, mask, threads, names, moved)
    for thread in view.busy:
        mask = thread.thread.cpus
        found = [
            other
            for other in view.after.system.others
            if any(allowed and set(allowed) <= set(mask) for allowed in other.running)
        ]
        if len(mask) == 1 and found and view.idle_cpus and _waiting([thread]) >= WAITING:
            names = [named(_work(view, thread.pid)), *(f"{other.name} ({other.pid})" for other in found)]
            yield _shared(view, mask, [thread], names, [thread.pid])


def _shared(
    view: View, mask: tuple[int, ...], threads: list[BusyThread], names: list[str], moved: list[int]
) -> Finding:
    cure = []
    free = set(view.idle_cpus)
    for pid in moved:
        usable = view.nearest(free & _allowed(view, pid), _towards(view, pid, mask))
        tids = [one.thread.tid for one in threads if one.pid == pid]
        for tid, cpu in zip(tids, usable, strict=False):
            free.discard(cpu)
            cure.append(f"taskset -cp {cpu} {tid}")
    return Finding(
        name="programs-on-one-cpu",
        what=f"{' and '.join(names)} are bound to {cpus(mask)}",
        evidence=(f"{cpus(view.idle_cpus)} did next to nothing",),
        cost=_cost(threads),
        measured=True,
        cure=tuple(cure),
        pids=tuple(sorted({one.pid for one in threads})),
        weight=sum(one.waited for one in threads),
    )


def siblings_doubled(view: View) -> Iterator[Finding]:
    """Two busy threads, bound, share a core as its hyperthreads, while whole cores idle."""
    at = {thread.thread.cpu: thread for thread in view.busy if len(thread.thread.cpus) == 1}
    idle = [core for core in view.machine.cores if view.idle_cpus.issuperset(core.cpus)]
    doubled = [[at[cpu] for cpu in core.cpus if cpu in at] for core in view.machine.cores]
    pairs = [threads for threads in doubled if len(threads) > 1]
    if not pairs or not idle:
        return
    moved = [thread for threads in pairs for thread in threads[1:]]
    free = [core.cpus[0] for core in idle]
    cure = []
    for thread in moved:
        usable = view.nearest(set(free) & _allowed(view, thread.pid), thread.node)
        if usable:
            free.remove(usable[0])
            cure.append(f"taskset -cp {usable[0]} {thread.thread.tid}")
    if not cure:
        return
    cores = "1 core runs" if len(pairs) == 1 else f"{len(pairs)} cores run"
    yield Finding(
        name="siblings-doubled",
        what=f"{cores} two busy threads each, {len(idle)} idle",
        evidence=tuple(
            f"{cpus(one.thread.cpu for one in threads)} are one core: threads "
            + some(one.thread.tid for one in threads)
            + f" {_at_once(threads)}"
            for threads in pairs[:5]
        ),
        cost="while both run, each may have 50 to 70 % of the speed that it has alone on a core",
        cure=tuple(cure),
        pids=tuple(sorted({one.pid for one in moved})),
        weight=sum(0.3 * (len(threads) - 1) * _together(threads)[1] for threads in pairs),
    )


def _together(threads: list[BusyThread]) -> tuple[float, float]:
    """The least and the greatest share of the time in which several of these threads can have run."""
    ran = sorted(min(1.0, one.ran) for one in threads)
    return max(0.0, sum(ran) - 1) / (len(ran) - 1), min(1.0, sum(ran[:-1]))


def _at_once(threads: list[BusyThread]) -> str:
    """How much of the time more than one of a core's threads ran, as the kernel counted what each ran."""
    least, most = map(percent, _together(threads))
    return f"run at once {least if least == most else f'{least} to {most}'} of the time (measured)"
