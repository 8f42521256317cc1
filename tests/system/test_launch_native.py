"""The native parts under sanitizers: the parser of the compact form, the table of live blocks; leaks."""

import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from numaplan.common.process import run_program
from numaplan.launcher import tracing
from numaplan.launcher.compact import compact
from numaplan.launcher.launch import LIBRARY
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanRegion, PlanThread, Predicted, RegionKey, Run
from numaplan.profiler.identity import prepare, read_identity, read_logs
from numaplan.profiler.machine import Machine
from tests.system.outside import plan_of_threads

pytestmark = pytest.mark.system
PROGRAMS = Path(__file__).parent / "programs"


def built(repository: Path, folder: Path, name: str, sources: list[str], sanitizer: str) -> Path:
    """The test program with parts of the library compiled in; skips where gcc has no such sanitizer."""
    program = folder / name
    includes = [
        f"-I{repository / part}"
        for part in ("profiler/native/preload", "launcher/native/form", "launcher/native/enforce")
    ]
    flags = ["-std=c11", "-O1", "-g", "-D_GNU_SOURCE", "-DNUMAPLAN_ENFORCE", f"-fsanitize={sanitizer}"]
    files = [str(PROGRAMS / f"launch_{name}.c"), *(str(repository / source) for source in sources)]
    command = ["gcc", *flags, "-fno-sanitize-recover=all", *includes, "-o", str(program), *files, "-lpthread"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot find -l" in result.stderr or "cannot find lib" in result.stderr:
        pytest.skip(f"gcc has no {sanitizer} sanitizer here")
    assert result.returncode == 0, result.stderr
    return program


def form(rng: random.Random) -> bytes:
    machine = Machine.load("4x2")
    threads = tuple(
        PlanThread(path="0" if n == 0 else f"0.{n}", thread=n, node=n % 4, cpus=(2 * (n % 4),), load=1.0)
        for n in range(rng.randrange(1, 9))
    )
    memory = tuple(
        PlanRegion(
            region=RegionKey(kind="heap", name=f"app+{n:#x}", bytes=8192, thread="0", sequence=n),
            policy=rng.choice(("bind", "interleave", "preferred", "next-touch")),
            runs=tuple(Run(offset=4096 * k, bytes=4096, node=k) for k in range(rng.randrange(3))),
        )
        for n in range(rng.randrange(6))
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
    return compact(plan, {"": machine.cpus}, lambda _module, _symbol: None).data


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


def test_no_form_makes_the_parser_leave_its_bounds(repository: Path, tmp_path: Path) -> None:
    program = built(repository, tmp_path, "form", ["launcher/native/form/form.c"], "address,undefined")
    rng = random.Random(7)
    whole = [form(rng) for _ in range(200)]
    forms = [*whole, *(mutated(rng, rng.choice(whole)) for _ in range(5000)), b"", whole[0][:63]]
    stream = b"".join(struct.pack("<I", len(data)) + data for data in forms)
    result = subprocess.run([program], input=stream, capture_output=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr.decode()
    taken, all_forms = (int(word) for word in result.stdout.partition(b",")[0].split(b" of "))
    assert all_forms == len(forms)
    assert 200 <= taken < len(forms) // 2


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_the_table_of_live_blocks_is_exact(repository: Path, tmp_path: Path, sanitizer: str) -> None:
    program = built(repository, tmp_path, "live", ["profiler/native/preload/live.c"], sanitizer)
    # The thread sanitizer cannot map its shadow under some address space layouts.
    command = [shutil.which("setarch") or "setarch", "-R", str(program)]
    result = subprocess.run(command, capture_output=True, timeout=100, check=False)
    assert (result.returncode, result.stdout) == (0, b"0 wrong\n"), result.stderr.decode()


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_records_of_many_threads_are_all_there(repository: Path, tmp_path: Path, sanitizer: str) -> None:
    program = built(repository, tmp_path, "log", ["profiler/native/preload/log.c"], sanitizer)
    command = [shutil.which("setarch") or "setarch", "-R", str(program), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, timeout=100, check=False)
    assert result.returncode == 0, result.stderr.decode()
    (log,) = read_logs(tmp_path)
    assert log.lost == 0
    for thread in range(4):
        own = [record for record in log.records if record.thread == thread]
        assert [record.b for record in own] == list(range(4000))
        assert all(record.text == str(record.b).encode() * 20 for record in own if record.b % 10 == 0)


def test_the_tracer_is_sound(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of threads, exec, fork and their ends, with its memory watched by sanitizers."""
    tracer, many, family = tmp_path / "trace.elf", tmp_path / "many", tmp_path / "family"
    parts = [repository / "launcher" / "native" / part for part in ("form", "trace")]
    sources = [str(file) for part in parts for file in part.glob("*.c")]
    flags = ["-std=c11", "-O1", "-g", "-D_GNU_SOURCE", "-fsanitize=address,undefined"]
    includes = [f"-I{part}" for part in parts]
    command = ["gcc", *flags, "-fno-sanitize-recover=all", *includes, "-o", str(tracer), *sources]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot find" in result.stderr:
        pytest.skip("gcc has no address sanitizer here")
    assert result.returncode == 0, result.stderr
    for program in (many, family):
        source = PROGRAMS / f"launch_{program.name}.c"
        subprocess.run(["gcc", "-static", "-o", program, source, "-lpthread"], check=True)
    monkeypatch.setattr(tracing, "TRACER", tracer)
    form = tmp_path / "plan.bin"
    plan = plan_of_threads([("p0", "0"), ("p0", "0.1"), ("p0.1", "0")])
    form.write_bytes(compact(plan, {"": (0,)}, lambda _module, _symbol: None).data)
    for number, argv in enumerate(([str(many), "2000"], [str(family)], ["sh", "-c", f"{family}; {many} 9"])):
        workdir = tmp_path / str(number)
        workdir.mkdir()
        assert followed(workdir, form, argv, hold=number == 1) == (0, 0)
        assert (workdir / tracing.LOG).stat().st_size > 0


def followed(workdir: Path, form: Path, argv: list[str], hold: bool) -> tuple[int, int | None]:
    """Exit codes of a program and of the tracer that followed it."""
    follower = tracing.Tracer(workdir, form, "p0", hold=hold)
    code = run_program(argv, os.environ, before_exec=follower.attach, started=lambda _: follower.started())
    return code, follower.ended(30)


@pytest.mark.parametrize("enforce", [False, True])
def test_hundreds_of_threads_leak_nothing(tmp_path: Path, enforce: bool) -> None:
    count = 300
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    program = tmp_path / "many"
    source = PROGRAMS / "launch_many.c"
    subprocess.run(["gcc", "-std=c11", "-g", "-o", program, source, "-lpthread"], check=True)
    preload = prepare(tmp_path, {}, LIBRARY) if enforce else prepare(tmp_path, {})
    if enforce:
        plan = plan_of_threads([("p0", "0"), *(("p0", f"0.{n}") for n in range(1, 50))])
        cpus = Machine.load("local").cpus
        form = tmp_path / "plan.bin"
        form.write_bytes(compact(plan, {"": cpus}, lambda _module, _symbol: None).data)
        preload["NUMAPLAN_PLAN"] = str(form)
    command = ["valgrind", "-q", "--trace-children=no", "--leak-check=full", "--error-exitcode=9"]
    result = subprocess.run(
        [*command, str(program), str(count)],
        env={**preload, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, b"%d 7\n" % (count * (count - 1) // 2)), result.stderr
    assert len(read_identity(tmp_path).threads) == count + 2  # it was there
