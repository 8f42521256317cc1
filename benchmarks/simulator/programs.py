"""What simulated programs do: phases of work, misses, sharing and memory; tasks are programs that arrive.

A program is fork-join: its threads do equal work and meet at barriers, so `barrier` of its speed is that of
the slowest. Of a thread's accesses `shared` go to memory all use and `halo` to its neighbours' (half to
each); the rest are its own. Of every segment, `serial` was first touched by the first thread.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Phase:
    """A share of the work with its own miss rate. mpki: last-level cache misses a thousand instructions;
    spread: how unequal the threads' miss rates are (relative deviation)."""

    share: float
    mpki: float
    spread: float = 0.0


@dataclass(frozen=True)
class Program:
    """A program; giga_instructions: work of all threads; memory_mb: all of it; mlp: misses in flight a
    thread.
    """

    name: str
    giga_instructions: float
    phases: tuple[Phase, ...]
    memory_mb: float
    shared: float = 0.1
    halo: float = 0.1
    serial: float = 0.1
    barrier: float = 0.8
    cpi: float = 0.6
    mlp: float = 30.0

    def scaled(self, factor: float) -> "Program":
        """The same with more or less work."""
        return replace(self, giga_instructions=self.giga_instructions * factor)


@dataclass(frozen=True)
class Task:
    """A program with so many threads that arrives at `at_s`, or when task `after` has ended (-1: none)."""

    program: Program
    threads: int
    at_s: float = 0.0
    after: int = -1
    processes: int = 1  # an MPI job: so many processes of threads / processes threads each


def steady(mpki: float, spread: float = 0.05) -> tuple[Phase, ...]:
    """One phase."""
    return (Phase(1.0, mpki, spread),)


def changing(low: float, high: float, times: int, spread: float = 0.3) -> tuple[Phase, ...]:
    """`times` phases alternating between two miss rates."""
    return tuple(Phase(1.0 / times, high if step % 2 else low, spread) for step in range(times))


# NAS benchmarks, class C: miss rates in the order of the paper's groups (few, some, many LLC misses).
NAS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program("bt", 1600, steady(12), 720, shared=0.05, halo=0.15),
        Program("cg", 320, steady(24), 900, shared=0.35, halo=0.0, serial=0.2),
        Program("dc", 420, steady(38, 0.3), 1400, shared=0.2, halo=0.0, barrier=0.2, mlp=15.0),
        Program("ep", 900, steady(0.1), 64, shared=0.0, halo=0.0, barrier=0.1),
        Program("ft", 450, steady(18), 1500, shared=0.4, halo=0.0),
        Program("is", 120, steady(10), 1060, shared=0.3, halo=0.0),
        Program("lu", 1200, steady(30), 660, shared=0.1, halo=0.15),
        Program("mg", 260, steady(34), 1400, shared=0.1, halo=0.2),
        Program("sp", 1000, steady(36), 760, shared=0.1, halo=0.15),
        Program("ua", 900, steady(22, 0.3), 480, shared=0.25, halo=0.1),
    )
}

# SPEC CPU 2006: single-threaded; misses a thousand instructions as [DINO], figure 8, orders them; as many
# instructions as the reference inputs have, about.
SPEC: Mapping[str, Program] = {
    name: Program(
        name, work, steady(mpki, 0.0), memory, shared=0.0, halo=0.0, barrier=0.0, serial=0.0, mlp=mlp
    )
    for name, work, mpki, memory, mlp in (
        ("mcf", 330, 60, 1600, 3.0),
        ("milc", 940, 28, 680, 5.0),
        ("lbm", 1500, 34, 410, 8.0),
        ("soplex", 700, 26, 430, 4.0),
        ("libquantum", 3550, 30, 64, 8.0),
        ("omnetpp", 690, 20, 170, 3.0),
        ("gcc", 1060, 4, 860, 4.0),
        ("bwaves", 1180, 10, 870, 8.0),
        ("bzip2", 2470, 3, 850, 4.0),
        ("gamess", 5190, 0.2, 60, 4.0),
        ("namd", 2480, 0.4, 50, 4.0),
        ("povray", 940, 0.1, 16, 4.0),
        ("calculix", 3040, 0.6, 200, 4.0),
        ("h264", 3730, 0.8, 64, 4.0),
        ("sjeng", 2380, 0.5, 180, 4.0),
        ("gobmk", 1600, 0.7, 32, 4.0),
    )
}

# SPEC MPI 2007: 16 processes whose miss rates change with their phases, in runs of some minutes. They
# cannot touch each other's memory: messages go through what all share.
MPI: Mapping[str, Program] = {
    name: Program(
        name, work, changing(low, high, 30), memory, shared=0.1, halo=0.0, serial=0.0, barrier=0.9, mlp=6.0
    )
    for name, work, low, high, memory in (
        ("leslie", 3000, 9, 26, 2400),
        ("lammps", 4800, 1, 6, 1600),
        ("GAPgeofem", 3000, 8, 24, 3200),
        ("socorro", 3400, 4, 16, 2200),
        ("lu", 3200, 6, 20, 2600),
    )
}
