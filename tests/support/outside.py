"""What a running program's threads are bound to, read from /proc while it runs: nothing of ours is asked."""

import os
import select
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanThread, Predicted
from numaplan.profiler import path_key
from tests.support.launching import NLAUNCH
from tests.support.waiting import until

OURS = ("nlaunch", "trace.elf", "")
RANKS = 4
BIRTH_NS = 20_000_000  # of a cpu: far more than a thread needs until its first instruction


@dataclass(frozen=True)
class Built:
    """A program with at least so many threads at once until its input ends, which begins with what is given.

    starter: what stands before nlaunch (mpirun); threads are then of each rank.
    """

    argv: Sequence[str]
    threads: int
    starter: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=dict)
    given: bytes = b""


@dataclass(frozen=True)
class Start:
    """One start: threads planned, those seen alive from outside, those of them on the planned cpus."""

    code: int
    output: str
    planned: int
    seen: int
    right: int
    wrong: tuple[str, ...]
    applied: dict[str, Any]


def tasks(pid: int) -> list[int]:
    """tids of a process, none when it has ended."""
    with suppress(OSError):
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208
    return []


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in tasks(pid):
        with suppress(OSError):
            found += [int(word) for word in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    return [*found, *(grandchild for child in found for grandchild in children(child))]


def comm(pid: int) -> str:
    """A process's name; empty when it has ended, waited for or not."""
    with suppress(OSError):
        name, _, fields = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
        return "" if fields.split()[0] in "ZX" else name
    return ""


def arguments(pid: int) -> list[str]:
    """A process's command line; none when it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def state_of(pid: int) -> str:
    """R, S, D, T or t (by a tracer), as the kernel has it; Z when it has ended, waited for or not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "Z"


class Processes:
    """Processes that are known by more than their pids, which are given out again once they have ended."""

    def __init__(self, pids: Iterable[int] = ()) -> None:
        self._descriptors: dict[int, int] = {}
        self.add(pids)

    def add(self, pids: Iterable[int]) -> None:
        """Those of them that live."""
        for pid in set(pids) - self._descriptors.keys():
            with suppress(OSError):
                self._descriptors[pid] = os.pidfd_open(pid)

    def living(self, name: str = "") -> list[int]:
        """The pids of those that have not ended; name: only those that are called so."""
        ended = select.select(self._descriptors.values(), [], [], 0)[0]
        pids = [pid for pid, descriptor in self._descriptors.items() if descriptor not in ended]
        return [pid for pid in pids if not name or comm(pid) == name]

    def kill(self, *pids: int) -> None:
        """End these, if they have not ended by themselves."""
        for pid in pids:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptors[pid], signal.SIGKILL)

    def close(self) -> None:
        """They are of no more interest."""
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])


def times_asleep(pid: int) -> int:
    """How often the threads of a process have waited for something: it shows that one went round its loop."""
    found = 0
    for task in tasks(pid):
        with suppress(OSError):
            text = Path(f"/proc/{pid}/task/{task}/status").read_text()
            found += int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return found


def run_seconds(*pids: int) -> float:
    """Processor time that processes have had so far, those of them that live."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def is_under_way(task: int) -> bool:
    """Whether a thread has waited for something, or run for longer than its birth takes; not while a tracer
    holds it."""
    with suppress(OSError):
        text = Path(f"/proc/{task}/status").read_text()
        slept = int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) > 0
        ran_ns = int(Path(f"/proc/{task}/schedstat").read_text().split()[0])
        return state_of(task) != "t" and (slept or ran_ns > BIRTH_NS)
    return False


class Looker:
    """Looks at a program's threads below a process; `seen`: tid -> cpus of those under way at two looks.

    A thread that is seen for the first time may still be before its first instruction.
    """

    def __init__(self, pid: int, built: Built) -> None:
        self.seen: dict[int, tuple[int, ...]] = {}
        self._once: set[int] = set()
        self._pid, self._built = pid, built

    def all_seen(self) -> bool:
        """Look; whether all threads that there are have been seen, and no fewer than must be."""
        processes = [tasks(pid) for pid in children(self._pid) if comm(pid) not in OURS]
        under_way = {task for process in processes for task in process if is_under_way(task)}
        for task in under_way & self._once:
            with suppress(OSError):
                self.seen[task] = tuple(sorted(os.sched_getaffinity(task)))
        self._once |= under_way
        counts = [len(self.seen.keys() & process) for process in processes]
        if counts != [len(process) for process in processes]:
            return False
        if self._built.starter:
            return sum(count >= self._built.threads for count in counts) >= RANKS
        return len(self.seen) >= self._built.threads


def start(plan: Plan, built: Built) -> list[Start]:
    """Run the plan once, until all threads were seen; a result a report, of which each rank writes one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan.save(folder / "plan.json")
        report = folder / "applied.%r.json"
        options = ["-q", "--plan", str(folder / "plan.json"), "--report", str(report)]
        with subprocess.Popen(
            [*built.starter, str(NLAUNCH), *options, "--", *built.argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **built.environment},
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            text: list[bytes] = []
            reader = threading.Thread(target=lambda: text.append(process.stdout.read()))  # type: ignore[union-attr]
            reader.start()
            with suppress(BrokenPipeError):
                process.stdin.write(built.given)
                process.stdin.flush()
            looker = Looker(process.pid, built)
            until(lambda: looker.all_seen() or process.poll() is not None)
            process.stdin.close()
            reader.join()
        output = b"".join(text).decode(errors="replace")
        reports = [msgspec.json.decode(file.read_bytes()) for file in sorted(folder.glob("applied*.json"))]
        assert reports, output
        return [judge(process.returncode, output, applied, looker.seen) for applied in reports]


def judge(code: int, output: str, applied: dict[str, Any], seen: Mapping[int, tuple[int, ...]]) -> Start:
    alive = [thread for thread in applied["threads"] if thread.get("tid", 0) in seen]
    wrong = tuple(
        f"{thread.get('process', 'p0')}/{thread['path']} on {seen[thread['tid']]}, not {thread['planned']}"
        for thread in alive
        if list(seen[thread["tid"]]) != thread["planned"]
    )
    return Start(code, output, len(applied["threads"]), len(alive), len(alive) - len(wrong), wrong, applied)


def plan_of_threads(
    threads: Sequence[tuple[str, str]], build_id: str = "", machine: Machine | None = None
) -> Plan:
    """Threads (process, path) in turn over the machine's cpus, so that none has what it would inherit."""
    machine = machine or Machine.load("local")
    seats = [(node.id, cpu) for node in machine.cpu_nodes for cpu in node.cpus]
    ordered = sorted(threads, key=lambda thread: (thread[0], path_key(thread[1])))
    return Plan(
        app=PlanApp(threads=len(ordered), build_id=build_id),
        machine=PlanMachine.of(machine),
        method="compact",
        objective="balanced",
        threads=tuple(
            PlanThread(
                path=path,
                thread=n,
                process=process,
                node=seats[n % len(seats)][0],
                cpus=(seats[n % len(seats)][1],),
                load=1.0,
            )
            for n, (process, path) in enumerate(ordered)
        ),
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def plan_of_programs(**programs: str) -> Plan:
    """The first process, and children that ran these: p0_1="sh" of p0.1."""
    names = {name.replace("_", "."): program for name, program in programs.items()}
    plan = plan_of_threads([("p0", "0"), *((name, "0") for name in names)])
    threads = [
        msgspec.structs.replace(thread, program=names[thread.process]) if thread.process in names else thread
        for thread in plan.threads
    ]
    return msgspec.structs.replace(plan, threads=tuple(threads))


def discover(built: Built) -> Plan:
    """A plan for every thread that a first run shows, of the program and of its children, in every rank."""
    roots = [f"r{rank}" for rank in range(8)] if built.starter else ["p0"]
    processes = [f"{root}{child}" for root in roots for child in ("", ".1", ".1.1", ".2", ".3")]
    first = plan_of_threads([(process, "0") for process in processes])
    found: set[tuple[str, str]] = set()
    for result in start(first, built):
        both = [*result.applied["threads"], *result.applied["unplanned"]]
        found |= {(thread.get("process", "p0"), thread["path"]) for thread in both if thread["applied"]}
    return plan_of_threads(sorted(found))
