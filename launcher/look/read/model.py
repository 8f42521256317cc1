"""What a look sees: a snapshot of processes, their threads and memory, and of the machine around them."""

from collections.abc import Mapping

import msgspec


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """A thread: where it ran last and may run, what it has run and waited for a cpu, in ns.

    faults: the kernel's decaying count of its NUMA hint faults by node of the memory, where it keeps one.
    """

    tid: int
    name: str
    cpu: int
    ran_ns: int
    waited_ns: int = 0
    cpus: tuple[int, ...] = ()
    mems: tuple[int, ...] = ()
    faults: Mapping[int, int] = {}


class Part(msgspec.Struct, frozen=True):
    """Memory of one policy and kind (anon, heap, stack, shared, huge, file): bytes by node."""

    policy: str
    kind: str
    nodes: dict[int, int]


class Memory(msgspec.Struct, frozen=True):
    """What numa_maps says of a process; libraries: those that place memory, by name."""

    parts: tuple[Part, ...]
    libraries: tuple[str, ...] = ()
    huge_page_bytes: int = 0


class Device(msgspec.Struct, frozen=True):
    """A device that a process has open, and the node that it is attached to."""

    path: str
    node: int


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process at a moment, in ns of any clock.

    memory: None in the first of two looks, and where it is hidden, `hidden` saying why; cgroup: its cpuset's
    folder; cpuset: the cpus that it allows, none where it does not say.
    """

    time_ns: int
    pid: int
    name: str
    argv: tuple[str, ...] = ()
    threads: tuple[Thread, ...] = ()
    memory: Memory | None = None
    hidden: str = ""
    cgroup: str = ""
    cpuset: tuple[int, ...] = ()
    seccomp: bool = False
    swapped: int = 0
    devices: tuple[Device, ...] = ()


class Sampled(msgspec.Struct, frozen=True):
    """What a sampler saw of a process: how many accesses, the share of them that was remote, and the share to
    memory that one thread, or the threads of one node, use almost alone.
    """

    accesses: int
    remote: float
    own: float


class Other(msgspec.Struct, frozen=True):
    """A process that is not looked at: ns of cpu time so far; in the second look, if it is busy, the cpus
    that each of its running threads may use.
    """

    pid: int
    name: str
    ran_ns: int
    running: tuple[tuple[int, ...], ...] = ()


class NodeState(msgspec.Struct, frozen=True):
    """A node's bytes, and its pools of huge pages: size in bytes -> (all, free) pages."""

    total: int
    free: int
    huge: dict[int, tuple[int, int]] = {}


class System(msgspec.Struct, frozen=True, kw_only=True):
    """The machine: ticks that each cpu was (busy, idle), the kernel's counters, nodes, settings.

    balancing: 0 off, 1 on, 2 tiering, None where the kernel has none.
    """

    cpus: dict[int, tuple[int, int]] = {}
    counters: dict[str, int] = {}
    nodes: dict[int, NodeState] = {}
    balancing: int | None = None
    others: tuple[Other, ...] = ()


class Snapshot(msgspec.Struct, frozen=True):
    """All of this, one process after another."""

    system: System
    processes: tuple[Process, ...]
