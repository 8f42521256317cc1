"""Programs run in the lab as they run here, and the lab leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from numaplan.lab.guest.control import GuestError
from numaplan.lab.guest.guest import Guest
from numaplan.lab.guest.kernel import installed_kernel
from tests.support.commands import needs, succeed
from tests.support.guests import SharedGuest, guest_program, said_uncounted
from tests.support.outside import arguments, children, state_of
from tests.support.waiting import until

pytestmark = pytest.mark.lab


def nlab(lab: Path, *words: object, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run nlab with words, output captured."""
    command = [str(lab / "nlab"), *map(str, words)]
    options = {"timeout": 600, **options}
    return subprocess.run(command, capture_output=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def temporary_folders() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("numaplan-lab-*")}


def guests_of(pid: int) -> list[int]:
    """Machines that `pid` has started, with a kernel; not what only tells QEMU's version."""
    return [child for child in children(pid) if "-kernel" in arguments(child)]


@pytest.mark.slow
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


def test_sockets_and_what_is_left_below_tmp(two_nodes: SharedGuest) -> None:
    """The host's files below /tmp can be read, changed, removed; sockets work there, and none is left."""
    if not installed_kernel().overlays:
        pytest.skip("the kernel here has no overlay file systems")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        (folder / "changed").write_text("here\n")
        (folder / "removed").write_text("")
        (folder / "emptied").mkdir()
        (folder / "emptied" / "old").write_text("")
        (folder / "kept").symlink_to("changed")
        script = (
            "cat changed; echo there >> changed; rm removed; rm -r emptied; mkdir emptied fresh; umask 077;"
            'echo new > fresh/file; ln -s file fresh/link; exec "$0" fresh/socket'
        )
        words = ["sh", "-c", f"cd {folder} && {script}", guest_program("sockets")]
        said, result = two_nodes.said(*words)
        assert (said, result["exit_code"]) == ("here\nlocalhost\n", 0)
        found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
        assert found == ["changed", "emptied", "fresh", "fresh/file", "fresh/link", "kept"]
        assert (folder / "changed").read_text() == "here\nthere\n"
        assert (folder / "fresh" / "file").stat().st_mode & 0o777 == 0o600
        assert (folder / "fresh" / "link").read_text() == "new\n"


@pytest.mark.slow
def test_vectors_are_computed_as_here(uncounted: Guest) -> None:
    """A sort that uses whatever vector instructions the processor has; QEMU has had wrong ones."""
    code = (
        "import numpy as np; rng = np.random.default_rng(1);"
        "lists = [rng.integers(0, 1000, count) for count in range(1, 130)];"
        "assert all((np.diff(keys[np.argsort(keys)]) >= 0).all() for keys in lists)"
    )
    said_uncounted(uncounted, [sys.executable, "-c", code])


@pytest.mark.slow
def test_json_alone_on_stdout_and_counts_of_what_does_not_end(lab: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.csv"
    words = ["run", "-m", "2x2", "--json", "--counts", counts, "--timeout", "5", "--", "sh", "-c"]
    done = nlab(lab, *words, "trap '' TERM; echo begun; sleep 1000 & sleep 1000")
    assert done.returncode == 124
    result = msgspec.json.decode(done.stdout)
    assert result["schema"] == "numaplan/lab/1"
    assert result["exit_code"] == 124
    assert result["cpus"] == [0, 1, 2, 3]
    assert result["nodes"] == [0, 1]
    assert b"begun\n" in done.stderr and b"ended after 5 s" in done.stderr
    rows = [list(map(int, line.split(","))) for line in counts.read_text().splitlines()[1:]]
    assert sum(row[3] for row in rows if row[1] == row[2]) == result["local"]
    assert sum(row[3] for row in rows if row[1] != row[2]) == result["remote"]


def test_a_signal_is_told_as_a_shell_tells_it(two_nodes: SharedGuest) -> None:
    assert two_nodes.run("sh", "-c", "kill -SEGV $$")["exit_code"] == 128 + signal.SIGSEGV


def test_a_folder_that_the_guest_lacks_is_named(
    two_nodes: SharedGuest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program was blamed for it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        monkeypatch.chdir(folder)
        with pytest.raises(GuestError, match=f"^{folder}: No such file or directory .* in another folder"):
            two_nodes.run("true")


def test_much_output_streams(two_nodes: SharedGuest, tmp_path: Path) -> None:
    count = 30_000_000
    with (tmp_path / "output").open("w+b") as output:
        assert two_nodes.run("head", "-c", count, "/dev/zero", stdout=output.fileno())["exit_code"] == 0
        output.seek(0)
        written = output.read()
    assert len(written) == count
    assert not written.strip(b"\0")


def test_a_reader_that_goes_ends_the_program_as_here(two_nodes: SharedGuest) -> None:
    reader, writer = os.pipe()
    got: list[bytes] = []

    def read() -> None:
        got.append(os.read(reader, 2))
        os.close(reader)

    thread = threading.Thread(target=read)
    thread.start()
    assert two_nodes.run("yes", stdout=writer)["exit_code"] == 128 + signal.SIGPIPE
    thread.join()
    assert got == [b"y\n"]
    os.close(writer)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_it_takes_its_guest_along(lab: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [lab / "nlab", "run", "-m", "2x2", "--", "sleep", "1000"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        until(guests_of, process.pid)
        guests = guests_of(process.pid)
        process.send_signal(number)
        _, errors = process.communicate(timeout=100)
    until(lambda: all(state_of(guest) in "ZX" for guest in guests))
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert errors in (b"", b"nlab: error: interrupted\n")
        assert not any(f"lab-{process.pid}-" in name for name in temporary_folders())


@pytest.mark.slow
def test_two_labs_at_once(lab: Path, two_nodes: SharedGuest) -> None:
    words = [lab / "nlab", "run", "-m", "2x1", "--", "echo", "a"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:
        while other.poll() is None:  # something runs here all the while, and takes little
            assert two_nodes.said("sh", "-c", "echo b; sleep 1")[0] == "b\n"
        assert other.communicate()[0] == b"a\n"


@pytest.mark.slow
def test_refusals_are_one_line(lab: Path, tmp_path: Path) -> None:
    here = tmp_path / "x"
    here.write_text("text")
    for words, code in (
        (["run", "-m", "2x2", "--", here], 2),
        (["run", "-m", "2x2", "--memory", "9000G", "--", "true"], 3),
        (["run", "-m", "64x4", "--", "true"], 2),
        (["compare", "-m", "2x2", "--configs", "default", "--gate", "plan.remote < 1", "--", "true"], 2),
        (["compare", "-m", "2x2", "--plan", here, "--", "true"], 2),
        (["compare", "-m", "2x2", "--no-cache", "--gate", "default.cost < 1", "--", "true"], 2),
    ):
        done = nlab(lab, *words)
        assert done.returncode == code, words
        lines = done.stderr.decode().splitlines()
        assert len(lines) == 1
        assert lines[0].startswith("nlab: error: ")
        assert " — " in lines[0]


@pytest.mark.slow
def test_a_plan_halves_remote_accesses_and_the_gate_sees_it(
    lab: Path, four_nodes: SharedGuest, tmp_path: Path
) -> None:
    needs("qemu-x86_64")
    trace, plan = tmp_path / "trace.db", tmp_path / "plan.json"
    junit, page = tmp_path / "junit.xml", tmp_path / "page.html"
    stencil = (guest_program("stencil"), "8", "2048", "100")
    succeed("nprof", "record", "--backend", "emulate", "-o", trace, "--", *stencil)
    succeed("nmap", "plan", trace, "--machine", "4x2", "-o", plan)
    words = ["compare", "-m", "4x2", "--plan", plan, "--configs", "default,no-autonuma,plan", "--repeat", "1"]
    gates = ["plan.remote <= 0.5 * default.remote", "plan.remote <= 50% * no-autonuma.remote"]
    gates.append("plan.cost < no-autonuma.cost")
    for gate in (*gates, "default.local_share > 2"):
        words += ["--gate", gate]
    done = nlab(lab, *words, "--junit", junit, "--html", page, "--json", "--", *stencil)
    assert done.returncode == 1
    assert b"default.local_share > 2" in done.stderr and b"does not hold" in done.stderr
    result = msgspec.json.decode(done.stdout)
    assert [gate["ok"] for gate in result["gates"]] == [True, True, True, False]
    planned = result["configs"]["plan"]["runs"][0]
    predicted = msgspec.json.decode(plan.read_bytes())["predicted"]["local_share"]
    assert abs(planned["local_share"] - predicted) < 0.03
    assert planned["applied"]["ok"]
    assert ElementTree.parse(junit).getroot()[0].get("failures") == "1"
    assert b"no-autonuma" in page.read_bytes()
    run = four_nodes.run(lab / "nlaunch", "--plan", plan, "--quiet", *stencil)
    # Neither nlaunch itself nor what its child did before it became the program is counted.
    assert [thread["path"] for thread in run["threads"]] == ["0", *(f"0.{k}" for k in range(1, 8))]
    total = run["local"] + run["remote"]
    assert total == sum(sum(thread["accesses"]) for thread in run["threads"])
    assert abs(total / (planned["local"] + planned["remote"]) - 1) < 0.005
    assert abs(run["local_share"] - planned["local_share"]) < 0.005
