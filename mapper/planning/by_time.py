"""Threads and pages placed together so that the expected cost is least: the objective `time`."""

from collections.abc import Sequence

from msgspec.structs import replace

from numaplan.analyzer import in_time

from ..memory.pages import PagePlan
from ..plan_file.parts import CurrentPlacement, Predicted
from ..threads.cost import node_indices
from ..threads.problem import Nodes
from ..threads.sparse import SparseMatrix
from ..workload.roles.exchanged import exchanged_matrix
from .by_threads import crowded
from .cost.timed_task import TimedTask
from .cost.unplanned import alone, in_order
from .larger import at_larger_inputs
from .page_notes import page_notes
from .predict import mean_latency, predict, serving_time
from .search.candidates import Choice, choose
from .shares import between_nodes, local_shares, shares_by_node
from .task import Placed, PlanTask, problem_for

MOST_NAMES = 8  # of a pool
SMALL = 0.01  # of the threads' time, below which a gain is worth a word


def place_for_time(task: PlanTask, by_thread: PlanTask) -> Placed:
    """By the least expected cost; nothing is placed where none is expected to be less than the kernel's.

    by_thread: the same task with a lane for each thread, for what it costs to bind each by hand.
    """
    timed = TimedTask(task)
    whole = timed if task.whole is task else TimedTask(task.whole)
    found = choose(timed, task.options.method, whole)
    chosen, pages = found.chosen, found.chosen.pages or PagePlan((), -1.0)
    return Placed(
        nodes=timed.ids[chosen.places].tolist(),
        cpus=chosen.cpus,
        pages=pages,
        pools=(pools := _pool_numbers(task, timed, found)),
        predicted=_predicted(task, timed, whole, found, timed if by_thread is task else TimedTask(by_thread)),
        notes=(
            *crowded(timed.problem, task),
            *_worth(timed, whole, found),
            *_pools(timed, chosen.places, task.workload.threads, alone=bool(found.reason)),
            *page_notes(pages, task.machine, next_touch=task.options.next_touch),
        ),
        alone=found.reason,
        exchanged=any(0 < pool <= len(timed.pools) for pool in pools),
        larger=at_larger_inputs(timed, whole, found, task.workload.larger, task.options.method),
    )


def _pool_numbers(task: PlanTask, timed: TimedTask, found: Choice) -> list[int]:
    """(N,) number of each thread's pool; left alone on some cpus all are one, with all of these."""
    if found.reason and task.limited:
        return [1] * len(found.chosen.cpus)
    return timed.cpus.pool_numbers(found.chosen.places)


def _predicted(
    task: PlanTask, timed: TimedTask, whole: TimedTask, found: Choice, by_thread: TimedTask
) -> Predicted:
    chosen, machine = found.chosen, task.machine
    # Whom a thread of a pool will talk to is not known: to each of the others as much.
    comm = task.workload.comm
    expected = comm if isinstance(comm, SparseMatrix) else exchanged_matrix(comm, timed.pools)
    problem = problem_for(replace(task.workload, comm=expected), task.usable, task.options, task.nodes)
    places = node_indices(task.usable, timed.ids[chosen.places], problem.threads)
    local, memory = local_shares(timed, chosen)
    local_before, memory_before = local_shares(whole, found.alone)
    beside = (found.alone, *found.tried, in_order(by_thread), alone(whole, interleaved=True))
    traffic, before = between_nodes(timed, chosen), between_nodes(whole, found.alone)
    return replace(
        predict(problem, places, task.usable, machine),
        lower_bound=-1.0,
        local_share=local,
        memory_share=memory,
        counted="memory accesses" if timed.pages.by_memory else "accesses",
        latency_ns=mean_latency(traffic, machine),
        node_shares=shares_by_node(timed, chosen),
        serving_ns=serving_time(traffic, machine),
        cost=chosen.cost.total_ns,
        cost_parts=chosen.cost.parts(),
        costs={one.name: one.cost.total_ns for one in beside},
        candidate_parts={one.name: one.cost.parts() for one in beside},
        doubt=found.doubt,
        today=CurrentPlacement(
            threads="recorded" if task.seen_on else "kernel",
            local_share=local_before,
            memory_share=memory_before,
            latency_ns=mean_latency(before, machine),
            node_shares=shares_by_node(whole, found.alone),
            serving_ns=serving_time(before, machine),
            cost=found.alone.cost.total_ns,
        ),
    )


def _pools(timed: TimedTask, places: Nodes, threads: Sequence[tuple[str, str]], *, alone: bool) -> list[str]:
    """Which threads are exchangeable, but for those that are pinned or keep to their node."""
    several = len({process for process, _ in threads}) > 1
    numbers, lines = timed.cpus.pool_numbers(places), []
    for number, pool in enumerate(timed.pools, 1):
        free = [t for t in pool.tolist() if numbers[t] == number]
        if len(free) < 2:
            continue
        names = [f"{threads[t][0]}:{threads[t][1]}" if several else threads[t][1] for t in free]
        shown = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
        idle = numbers.count(number) - len(free)
        beside = f"; {idle} more, which did little, may do that in the next run" if idle else ""
        lines.append(
            f"{len(names)} threads are exchangeable, a pool ({shown}): none has a cpu of its own, and what is"
            f" predicted is the mean of what each may do{beside}"
        )
    if not alone and (crowd := numbers.count(len(timed.pools) + 1)):
        lines.append(f"{crowd} threads hardly do anything: they may run wherever no other thread is")
    return lines


def _worth(timed: TimedTask, whole: TimedTask, found: Choice) -> list[str]:
    """What the plan is worth, where that is little, not sure, or a loss."""
    if found.gain < -found.doubt:
        asked = whole is not timed or timed.options.method != "best"
        return [
            f"expected to cost {in_time(-found.gain, 3)} of waiting more than leaving it alone"
            f"{', as pins or options ask for it' if asked else ''}"
        ]
    if not found.chosen.bound:
        return []
    share = found.gain / whole.busy_ns(found.alone)
    if found.gain <= found.doubt:
        return [
            f"what the plan should save ({in_time(found.gain, 3)} of waiting) is within what is unsure about"
            f" it ({in_time(found.doubt, 2)})"
        ]
    if share < SMALL:
        return [f"the program hardly waits for memory: the plan saves {share:.2%} of its threads' time"]
    return []
