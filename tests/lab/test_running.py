"""Programs run in the lab as they run here, and the lab leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from numaplan.common import MachineLacksError
from numaplan.profiler.backends.emulate_guest import find_qemu

pytestmark = pytest.mark.lab


def nlab(lab: Path, *words: object, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run nlab with words, output captured."""
    command = [str(lab / "nlab"), *map(str, words)]
    options = {"timeout": 200, **options}
    return subprocess.run(command, capture_output=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def temporary_folders() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("numaplan-lab-*")}


def guests_of(pid: int) -> list[int]:
    """Processes whose parent is `pid`."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in children.read_text().split()] if children.exists() else []


def test_streams_environment_folder_and_exit_code(lab: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a folder, with = signs"
    folder.mkdir()
    script = folder / "my program"
    script.write_text('#!/bin/sh\ncat\necho "$LAB_TEST in $PWD, $1" >&2\necho kept > "out put"\nexit 37\n')
    script.chmod(0o755)
    noise = os.urandom(3_000_000)
    environment = {**os.environ, "LAB_TEST": "value\nof two lines", "TMPDIR": str(folder)}
    done = nlab(
        lab, "run", "-m", "2x1", "--", "./my program", "é ü", input=noise, cwd=folder, env=environment
    )
    assert done.returncode == 37
    assert done.stdout == noise
    assert done.stderr.startswith(f"value\nof two lines in {folder}, é ü\n".encode())
    assert (folder / "out put").read_text() == "kept\n"
    assert sorted(path.name for path in folder.iterdir()) == ["my program", "out put"]


def test_vectors_are_computed_as_here(lab: Path) -> None:
    """A sort that uses whatever vector instructions the processor has; QEMU has had wrong ones."""
    code = (
        "import numpy as np; rng = np.random.default_rng(1);"
        "lists = [rng.integers(0, 1000, count) for count in range(1, 130)];"
        "assert all((np.diff(keys[np.argsort(keys)]) >= 0).all() for keys in lists)"
    )
    done = nlab(lab, "run", "-m", "1x1", "--", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr


def test_json_alone_on_stdout_and_counts(lab: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.csv"
    done = nlab(
        lab, "run", "-m", "2x2", "--json", "--counts", counts, "--", "sh", "-c", "echo out; kill -SEGV $$"
    )
    assert done.returncode == 128 + signal.SIGSEGV
    result = msgspec.json.decode(done.stdout)
    assert result["schema"] == "numaplan/lab/1"
    assert result["exit_code"] == 128 + signal.SIGSEGV
    assert result["cpus"] == [0, 1, 2, 3]
    assert result["nodes"] == [0, 1]
    assert b"out\n" in done.stderr
    rows = [list(map(int, line.split(","))) for line in counts.read_text().splitlines()[1:]]
    assert sum(row[3] for row in rows if row[1] == row[2]) == result["local"]
    assert sum(row[3] for row in rows if row[1] != row[2]) == result["remote"]


def test_what_does_not_end_is_ended(lab: Path, tmp_path: Path) -> None:
    own = {**os.environ, "TMPDIR": str(tmp_path)}
    command = "trap '' TERM; echo begun; sleep 1000 & sleep 1000"
    done = nlab(lab, "run", "-m", "2x1", "--timeout", "2", "--", "sh", "-c", command, env=own)
    assert done.returncode == 124
    assert done.stdout == b"begun\n"
    assert b"ended after 2 s" in done.stderr
    assert not list(tmp_path.iterdir())


def test_much_output_streams(lab: Path) -> None:
    count = 100_000_000
    done = nlab(lab, "run", "-m", "1x1", "--", "head", "-c", count, "/dev/zero")
    assert done.returncode == 0
    assert len(done.stdout) == count
    assert not done.stdout.strip(b"\0")


def test_a_reader_that_goes_ends_the_program_as_here(lab: Path) -> None:
    command = [lab / "nlab", "run", "-m", "1x1", "--", "yes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(2) == b"y\n"
        process.stdout.close()
        assert process.wait(100) == 128 + signal.SIGPIPE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_it_takes_its_guest_along(lab: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [lab / "nlab", "run", "-m", "2x2", "--", "sleep", "1000"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        while not (guests := guests_of(process.pid)):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    for _ in range(200):
        if not any(_runs(guest) for guest in guests):
            break
        time.sleep(0.05)
    else:
        pytest.fail("the guest lives on")
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert errors in (b"", b"nlab: error: interrupted\n")
        assert not any(f"lab-{process.pid}-" in name for name in temporary_folders())


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_two_labs_at_once(lab: Path) -> None:
    words = [lab / "nlab", "run", "-m", "2x1", "--", "sh", "-c"]
    labs = [
        subprocess.Popen([*words, f"echo {name}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for name in "ab"
    ]
    assert [process.communicate(timeout=200)[0] for process in labs] == [b"a\n", b"b\n"]


def test_refusals_are_one_line(lab: Path, tmp_path: Path) -> None:
    here = tmp_path / "x"
    here.write_text("text")
    for words, code in (
        (["run", "-m", "2x2", "--", here], 2),
        (["run", "-m", "2x2", "--memory", "9000G", "--", "true"], 3),
        (["run", "-m", "64x4", "--", "true"], 2),
        (["compare", "-m", "2x2", "--configs", "default", "--gate", "plan.remote < 1", "--", "true"], 2),
        (["compare", "-m", "2x2", "--plan", here, "--", "true"], 2),
    ):
        done = nlab(lab, *words)
        assert done.returncode == code, words
        lines = done.stderr.decode().splitlines()
        assert len(lines) == 1
        assert lines[0].startswith("nlab: error: ")
        assert " — " in lines[0]


def test_a_plan_halves_remote_accesses_and_the_gate_sees_it(
    lab: Path, programs: Path, tmp_path: Path
) -> None:
    try:
        find_qemu("x86_64")
    except MachineLacksError as error:
        pytest.skip(f"nothing to record with: {error}")
    trace, plan = tmp_path / "trace.db", tmp_path / "plan.json"
    junit, page = tmp_path / "junit.xml", tmp_path / "page.html"
    stencil = programs / "stencil"
    for command in (
        ["nprof", "record", "--backend", "emulate", "-o", trace, "--", stencil],
        ["nmap", "plan", trace, "--machine", "4x2", "-o", plan],
    ):
        subprocess.run([lab / command[0], *command[1:]], check=True, capture_output=True, timeout=120)
    words = ["compare", "-m", "4x2", "--plan", plan, "--configs", "default,no-autonuma,plan", "--repeat", "1"]
    gates = ["plan.remote <= 0.5 * default.remote", "plan.remote <= 50% * no-autonuma.remote"]
    for gate in gates:
        words += ["--gate", gate]
    done = nlab(lab, *words, "--junit", junit, "--html", page, "--json", "--", stencil)
    assert done.returncode == 0, done.stderr
    result = msgspec.json.decode(done.stdout)
    planned = result["configs"]["plan"]["runs"][0]
    predicted = msgspec.json.decode(plan.read_bytes())["predicted"]["local_share"]
    assert abs(planned["local_share"] - predicted) < 0.03
    assert planned["applied"]["ok"]
    assert ElementTree.parse(junit).getroot()[0].get("failures") == "0"
    assert b"no-autonuma" in page.read_bytes()
    inside = nlab(
        lab, "run", "-m", "4x2", "--by-thread", "--json", "--",
        lab / "nlaunch", "--plan", plan, "--quiet", stencil,
    )  # fmt: skip
    # Neither nlaunch itself nor what its child did before it became the program is counted.
    run = msgspec.json.decode(inside.stdout)
    assert [thread["path"] for thread in run["threads"]] == ["0", *(f"0.{k}" for k in range(1, 8))]
    total = run["local"] + run["remote"]
    assert total == sum(sum(thread["accesses"]) for thread in run["threads"])
    assert abs(total / (planned["local"] + planned["remote"]) - 1) < 0.005
    assert abs(run["local_share"] - planned["local_share"]) < 0.005
    failing = nlab(
        lab, "compare", "-m", "2x1", "--configs", "default", "--repeat", "1", "--junit", junit,
        "--gate", "default.local_share > 2", "--", "true",
    )  # fmt: skip
    assert failing.returncode == 1
    assert b"does not hold" in failing.stderr
    assert ElementTree.parse(junit).getroot()[0].get("failures") == "1"
