"""A process's memory by the kernel's policy for it, in programs whose single regions cannot be placed."""

import platform
from collections.abc import Sequence

from msgspec import UNSET

from numaplan.machine import Machine, format_list
from numaplan.mapper import Plan, PlanRegion

# set_mempolicy, get_mempolicy
_NUMBERS = {"x86_64": (238, 239), "aarch64": (237, 236), "ppc64le": (261, 260), "riscv64": (237, 236)}
_DEFAULT, _PREFERRED, _INTERLEAVE, _LOCAL = 0, 1, 3, 4
_WORD_BITS = 64


def memory_nodes(plan: Plan, process: str, machine: Machine) -> tuple[int, ...]:
    """The nodes among which all memory of a process is spread; empty: it is best left to first touch.

    Of regions bound to nodes the process's policy knows nothing: then each is left to who touches it first.
    """
    regions = [region for region in plan.memory if region.region.process == process and region.runs]
    if regions:
        spread = [region for region in regions if region.policy == "interleave"]
        if 2 * sum(map(_weight, spread)) <= sum(map(_weight, regions)):
            return ()
        return tuple(sorted({run.node for region in spread for run in region.runs}))
    threads = [thread for thread in plan.threads if thread.process == process]
    pooled = [thread for thread in threads if thread.pool is not UNSET]
    if len(threads) == 1 or 2 * sum(thread.load for thread in pooled) <= sum(
        thread.load for thread in threads
    ):
        return ()
    nodes = {machine.node_of_cpu[cpu] for thread in pooled for cpu in thread.cpus}
    return tuple(sorted(nodes)) if len(nodes) > 1 else ()


def where_memory_is(nodes: Sequence[int]) -> str:
    """What `memory_nodes` comes to, in words that follow "memory is"."""
    if len(nodes) > 1:
        return f"spread over nodes {format_list(nodes)} as a whole"
    return f"put on node {nodes[0]} as a whole, while it has room" if nodes else "left to first touch"


def memory_notes(plan: Plan, nodes: Sequence[int], reason: str) -> list[str]:
    """What to say of the memory of a plan whose program was followed from outside for a reason."""
    if not plan.memory and not nodes:
        return []
    return [f"memory was {where_memory_is(nodes)}: the program was followed from outside ({reason})"]


def _weight(region: PlanRegion) -> float:
    """The accesses to a region where the plan tells, its bytes where not."""
    return region.share if isinstance(region.share, float) else float(region.region.bytes)


def set_memory_policy(nodes: Sequence[int]) -> None:
    """Have the kernel spread the memory that this process, and what it becomes, touches first.

    Without nodes it stays where it is touched: AutoNUMA moves only what no policy is for. Quietly nothing
    where the kernel refuses: memory is then left to first touch.
    """
    import ctypes  # here and not above: only programs that are traced wait for it

    if platform.machine() not in _NUMBERS:
        return
    change, look = map(ctypes.c_long, _NUMBERS[platform.machine()])
    kernel, none = ctypes.CDLL(None).syscall, ctypes.c_ulong(0)
    if not nodes:
        now = ctypes.c_int(-1)
        kernel(look, ctypes.byref(now), None, none, None, none)
        if now.value == _DEFAULT:
            kernel(change, _LOCAL, None, none)
        return
    words = max(nodes) // _WORD_BITS + 1
    mask = (ctypes.c_uint64 * words)()
    for node in nodes:
        mask[node // _WORD_BITS] |= 1 << node % _WORD_BITS
    policy = _INTERLEAVE if len(nodes) > 1 else _PREFERRED
    # The kernel reads one bit less than it is told.
    kernel(change, policy, mask, ctypes.c_ulong(words * _WORD_BITS + 1))
