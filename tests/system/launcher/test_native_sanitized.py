"""The native parts under sanitizers: the parser of the plan table, the table of live blocks; leaks."""

import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import msgspec
import pytest
from msgspec import UNSET

from numaplan.launcher import LIBRARY
from numaplan.launcher.enforce.plan_table import encode, make_plan_table
from numaplan.machine import Machine
from numaplan.mapper import (
    Blocks,
    Plan,
    PlanApp,
    PlanMachine,
    PlanRegion,
    PlanThread,
    Predicted,
    RegionKey,
    Run,
)
from numaplan.profiler.identity.environment import prepare
from numaplan.profiler.identity.log import read_logs
from numaplan.profiler.identity.read import read_identity
from tests.support.launching import build
from tests.support.outside import plan_of_threads
from tests.support.programs import PROGRAMS, REPOSITORY, sanitized
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.system


PRELOAD, PLAN_TABLE, ENFORCE = (
    REPOSITORY / folder
    for folder in ("profiler/native/preload", "launcher/native/plan_table", "launcher/native/enforce")
)


def built(name: str, part: Path, sanitizer: str) -> Path:
    """The test program with a part of the library compiled in."""
    flags = ("-std=c11", f"-I{PRELOAD}", f"-I{PLAN_TABLE}", f"-I{ENFORCE}", "-lpthread")
    return sanitized(PROGRAMS / "launcher" / f"{name}.c", part, sanitizer=sanitizer, flags=flags)


def table(rng: random.Random) -> bytes:
    machine = Machine.load("4x2")
    threads = tuple(
        PlanThread(path="0" if n == 0 else f"0.{n}", thread=n, node=n % 4, cpus=(2 * (n % 4),), load=1.0)
        for n in range(rng.randrange(1, 9))
    ) + tuple(
        PlanThread(path="0", thread=-1, node=0, cpus=(0,), load=1.0, process=process, program="worker")
        for n in range(1, rng.randrange(1, 4))
        for process in (f"p0.{n}", f"p0.{n}.1")
    )
    memory = tuple(
        PlanRegion(
            region=RegionKey(kind="heap", name=f"app+{n:#x}", bytes=8192, thread="0", sequence=n),
            policy=rng.choice(("bind", "interleave", "preferred", "next-touch")),
            runs=tuple(Run(offset=4096 * k, bytes=4096, node=k) for k in range(rng.randrange(3))),
        )
        for n in range(rng.randrange(6))
    ) + tuple(
        PlanRegion(
            region=RegionKey(
                kind="heap", name=f"app+{n // 2:#x}", bytes=8192 << n, thread="0", sequence=None
            ),
            policy="bind",
            runs=tuple(Run(offset=4096 * k, bytes=4096, node=k) for k in range(rng.randrange(3))),
            blocks=Blocks(least=8192 << n, most=(16384 << n) - 1),
        )
        for n in range(rng.randrange(4))
    )
    plan = Plan(
        app=PlanApp(threads=len(threads)),
        machine=PlanMachine.of(machine),
        method="best",
        objective="remote",
        threads=threads,
        memory=memory,
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )
    return encode(plan, {"": machine.cpus}, lambda _module, _symbol: None).data


def mutated(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(changed))
        if rng.random() < 0.5:
            changed[at] = rng.randrange(256)
        else:
            at &= ~3
            changed[at : at + 4] = rng.choice((b"\xff" * 4, b"\0\0\0\x80", b"\0" * 4, b"\1\0\0\0"))
    if rng.random() < 0.3:
        del changed[rng.randrange(len(changed)) :]
    if rng.random() < 0.3 and len(changed) >= 40:
        changed[32:40] = len(changed).to_bytes(8, "little")  # a size that agrees gets further in
    return bytes(changed)


def test_no_table_makes_the_parser_leave_its_bounds() -> None:
    program = built("plan_table", PLAN_TABLE / "plan_table.c", "address,undefined")
    rng = random.Random(7)
    whole = [table(rng) for _ in range(200)]
    tables = [*whole, *(mutated(rng, rng.choice(whole)) for _ in range(5000)), b"", whole[0][:63]]
    stream = b"".join(struct.pack("<I", len(data)) + data for data in tables)
    result = subprocess.run([program], input=stream, capture_output=True, timeout=PATIENCE_S, check=False)
    assert result.returncode == 0, result.stderr.decode()
    taken, all_tables = (int(word) for word in result.stdout.partition(b",")[0].split(b" of "))
    assert all_tables == len(tables)
    assert 200 <= taken < len(tables) // 2


# Where things stand in a table of two threads (one of a child), a region, a rule and two runs:
# launcher/enforce/plan_table.py.
HEADER, THREAD, REGION = 0, 64, 64 + 2 * 40
RULE, RUN = REGION + 64, REGION + 2 * 64
SIZES = RUN + 2 * 24
PROCESS = SIZES + 16
CPU = PROCESS + 32
ATTACKS = {
    "threads": (HEADER + 12, "<I", (3, 0xFFFFFFFF, 1 << 27)),
    "cpus": (HEADER + 16, "<I", (0, 1, 3, 0xFFFFFFFF, 1 << 30)),
    "regions": (HEADER + 20, "<I", (3, 0xFFFFFFFF, 1 << 26)),
    "runs": (HEADER + 24, "<I", (0, 3, 0xFFFFFFFF)),
    "rules": (HEADER + 40, "<I", (0, 2, 3, 0xFFFFFFFF)),
    "a rule's kind": (RULE + 60, "<H", (0, 4, 5)),
    "a rule's bytes": (RULE + 32, "<Q", (0, 4095, (1 << 56) + 1)),
    "processes": (HEADER + 48, "<I", (0, 2, 0xFFFFFFFF)),
    "a process's parent": (PROCESS + 28, "<I", (2, 0xFFFFFFFF)),
    "bytes": (HEADER + 32, "<Q", (0, CPU, CPU + 5, 1 << 63)),
    "a thread's first cpu": (THREAD + 16, "<I", (2, 0xFFFFFFFF)),
    "a thread's number of cpus": (THREAD + 20, "<I", (3, 0xFFFFFFFF)),
    "a thread's node": (THREAD + 24, "<i", (-2, 1024, 1 << 30)),
    "a thread's pool": (THREAD + 32, "<I", (3, 0xFFFFFFFF)),
    "a thread's lane": (THREAD + 36, "<I", (3, 0xFFFFFFFF)),
    "a region's bytes": (REGION + 32, "<Q", (4095, (1 << 56) + 1, (1 << 64) - 1)),
    "a region's first run": (REGION + 48, "<I", (2, 3, 0xFFFFFFFF)),
    "a region's number of runs": (REGION + 52, "<I", (3, 0xFFFFFFFF)),
    "a region's kind": (REGION + 60, "<H", (0, 5, 0xFFFF)),
    "a region's policy": (REGION + 62, "<H", (0, 5, 0xFFFF)),
    "a run's offset": (RUN, "<Q", (4097, (1 << 64) - 4096, (1 << 64) - 1)),
    "a run's bytes": (RUN + 8, "<Q", (0, 8193, (1 << 64) - 1)),
    "a run's node": (RUN + 16, "<I", (1024, 0xFFFFFFFF)),
    "a cpu": (CPU, "<I", (8192, 0xFFFFFFFF)),
}


def test_tables_that_claim_what_they_do_not_hold_are_refused() -> None:
    program = built("plan_table", PLAN_TABLE / "plan_table.c", "address,undefined")
    key = RegionKey(kind="heap", name="app+0x10", bytes=8192, thread="0", sequence=1)
    region = PlanRegion(region=key, policy="bind", runs=(Run(offset=0, bytes=4096, node=0),))
    rule = PlanRegion(
        region=msgspec.structs.replace(key, sequence=None), policy="bind", runs=region.runs, blocks=Blocks()
    )
    first, child = plan_of_threads([("p0", "0"), ("p0.1", "0")]).threads
    threads = first, msgspec.structs.replace(child, program="worker")
    plan = msgspec.structs.replace(plan_of_threads([]), threads=threads, memory=(region, rule))
    whole = encode(plan, {}, lambda _module, _symbol: None).data
    assert len(whole) == CPU + 2 * 4
    tables = [whole]
    for at, layout, values in ATTACKS.values():
        for value in values:
            changed = bytearray(whole)
            struct.pack_into(layout, changed, at, value)
            tables.append(bytes(changed))
    stream = b"".join(struct.pack("<I", len(data)) + data for data in tables)
    result = subprocess.run([program], input=stream, capture_output=True, timeout=PATIENCE_S, check=False)
    assert result.returncode == 0, result.stderr.decode()
    assert result.stdout.startswith(b"1 of %d," % len(tables))


@pytest.mark.parametrize("unplanned", ["float", "anywhere", "inherit"])
def test_tables_are_taken_whatever_cpus_a_launch_has(unplanned: str) -> None:
    """As of a rank that was started on the last cpus of its host, with and without a part in the plan."""
    program = built("plan_table", PLAN_TABLE / "plan_table.c", "address,undefined")
    machine = Machine.load("4x8")
    threads = plan_of_threads([("p0", "0"), ("p0", "0.1")], machine=machine).threads
    placed = tuple(
        msgspec.structs.replace(thread, node=3, cpus=(24, 25), pool=pool)
        for thread, pool in zip(threads, (UNSET, 1), strict=True)
    )
    tables = [
        make_plan_table(
            msgspec.structs.replace(plan_of_threads([], machine=machine), threads=some),
            machine,
            "app",
            unplanned,
            {},
            allowed,
        ).data
        for some, allowed in ((placed, range(24, 32)), (placed, range(32)), ((), range(8, 16)))
    ]
    stream = b"".join(struct.pack("<I", len(data)) + data for data in tables)
    result = subprocess.run([program], input=stream, capture_output=True, timeout=PATIENCE_S, check=False)
    assert result.returncode == 0, result.stderr.decode()
    assert result.stdout.startswith(b"3 of 3,")


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_the_table_of_live_blocks_is_exact(sanitizer: str) -> None:
    program = built("live", PRELOAD / "live.c", sanitizer)
    # The thread sanitizer cannot map its shadow under some address space layouts.
    command = [shutil.which("setarch") or "setarch", "-R", str(program)]
    result = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
    assert (result.returncode, result.stdout) == (0, b"0 wrong\n"), result.stderr.decode()


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_records_of_many_threads_are_all_there(tmp_path: Path, sanitizer: str) -> None:
    program = built("log", PRELOAD / "log.c", sanitizer)
    command = [shutil.which("setarch") or "setarch", "-R", str(program), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
    assert result.returncode == 0, result.stderr.decode()
    (log,) = read_logs(tmp_path)
    assert log.lost == 0
    for thread in range(4):
        own = [record for record in log.records if record.thread == thread]
        assert [record.b for record in own] == list(range(4000))
        assert all(record.text == str(record.b).encode() * 20 for record in own if record.b % 10 == 0)
    assert [record.b for record in log.records if record.thread == 4] == list(range(6000))
    assert len(log.records) == 4 * 4000 + 6000


def anonymous_bytes(pid: int) -> int:
    """Memory that has pages and is no file's; counted page by page, as `status` does not."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.partition("Anonymous:")[2].split()[0]) << 10


@pytest.mark.slow
def test_thousands_of_threads_leave_no_memory_behind(tmp_path: Path) -> None:
    """Of 10,000 threads no more stays than of 1,000, but for what is in the log's file."""
    program = build("many")
    table = tmp_path / "plan.bin"
    plan = plan_of_threads([("p0", "0"), *(("p0", f"0.{n}") for n in range(1, 11_000))])
    table.write_bytes(encode(plan, {"": Machine.load("local").cpus}, lambda _module, _symbol: None).data)
    resident = {}
    for count in (1000, 10_000):
        workdir = tmp_path / str(count)
        workdir.mkdir()
        environment = {**prepare(workdir, os.environ, LIBRARY), "NUMAPLAN_PLAN": str(table)}
        with subprocess.Popen(
            [program, str(count), "stay"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdin is not None and child.stdout is not None
            assert child.stdout.readline().endswith(b" 7\n")
            resident[count] = anonymous_bytes(child.pid)
            child.stdin.close()
        assert child.returncode == 0
        assert sum(len(log.records) for log in read_logs(workdir)) > 2 * count
    assert resident[10_000] - resident[1000] < 512 << 10


@pytest.mark.slow
@pytest.mark.parametrize("enforce", [False, True])
def test_hundreds_of_threads_leak_nothing(tmp_path: Path, enforce: bool) -> None:
    count = 300
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    program = build("many", "-g")
    preload = prepare(tmp_path, {}, LIBRARY) if enforce else prepare(tmp_path, {})
    if enforce:
        plan = plan_of_threads([("p0", "0"), *(("p0", f"0.{n}") for n in range(1, 50))])
        cpus = Machine.load("local").cpus
        table = tmp_path / "plan.bin"
        table.write_bytes(encode(plan, {"": cpus}, lambda _module, _symbol: None).data)
        preload["NUMAPLAN_PLAN"] = str(table)
    command = ["valgrind", "-q", "--trace-children=no", "--leak-check=full", "--error-exitcode=9"]
    result = subprocess.run(
        [*command, str(program), str(count)],
        env={**preload, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, b"%d 7\n" % (count * (count - 1) // 2)), result.stderr
    assert len(read_identity(tmp_path).threads) == count + 2  # it was there
