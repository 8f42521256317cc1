"""`nlaunch --auto=record`: the first run is recorded, the second placed; what goes wrong leaves nothing."""

import json
import os
import signal
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from numaplan.mapper import Plan, program_key
from tests.support.auto_runs import Store
from tests.support.commands import needs
from tests.support.launching import NLAUNCH
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.system


@pytest.mark.slow
def test_the_first_run_is_recorded_and_the_second_placed(store: Store, work: str, tmp_path: Path) -> None:
    needs("qemu-x86_64")
    first = store.record(work, "0")
    alone = subprocess.run([work, "0"], capture_output=True, check=True)
    assert (first.returncode, first.stdout) == (0, alone.stdout), first.stderr
    (file,) = store.files()
    said = first.stderr.decode().splitlines()
    assert len(said) == 2 and "emulate" in said[0] and str(file) in said[0]
    assert [*store.temporary.iterdir()] == []
    assert len(Plan.load(file).app.argv) == 2
    second = store.launch("--report", tmp_path / "applied.json", work, "0", mode="=record")
    assert (second.returncode, second.stdout) == (0, alone.stdout), second.stderr
    applied = json.loads((tmp_path / "applied.json").read_bytes())
    assert applied["threads"] == [] or all(t["applied"] == t["planned"] for t in applied["threads"])
    assert store.files() == [file] and [*store.temporary.iterdir()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "code", "said"),
    [("short", 0, "too short"), ("9", 9, "it ended with 9"), ("crash", 139, "")],
)
def test_a_run_that_is_short_or_dies_leaves_nothing(
    store: Store, work: str, how: str, code: int, said: str
) -> None:
    needs("qemu-x86_64")
    result = store.record(work, how)
    assert result.returncode == code, result.stderr
    assert f"not planned: {said}" in result.stderr.decode()
    store.nothing_left()


def test_nothing_is_recorded_whose_plan_could_not_be_stored(store: Store, work: str) -> None:
    needs("qemu-x86_64")
    build = store.folder / program_key([work], store.environment).build
    build.mkdir(parents=True)
    build.chmod(0o775)
    result = store.record(work, "4")
    assert result.returncode == 4 and b"first run" not in result.stderr
    assert f"not recorded: {build}: others may write to it" in result.stderr.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_run_that_is_interrupted_leaves_nothing(
    store: Store, work: str, number: signal.Signals
) -> None:
    needs("qemu-x86_64")
    command = [NLAUNCH, "--auto=record", "--backend", "emulate", work, "hang"]
    with subprocess.Popen(
        command, env=store.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        child.send_signal(number)
        _, said = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 128 + number, said
    store.nothing_left()


@pytest.mark.slow
def test_the_next_first_run_removes_what_a_kill_left(store: Store, work: str) -> None:
    """And not what another one still uses."""
    needs("qemu-x86_64")
    command = [NLAUNCH, "--auto=record", "--backend", "emulate", work, "hang"]
    with ExitStack() as stack:
        killed, alive = (
            stack.enter_context(
                subprocess.Popen(
                    command, env=store.environment, stdout=subprocess.PIPE, start_new_session=True
                )
            )
            for _ in range(2)
        )
        for one in (killed, alive):
            stack.enter_context(suppress(ProcessLookupError))
            stack.callback(os.killpg, one.pid, signal.SIGKILL)
            assert one.stdout is not None and one.stdout.readline() == b"ready\n"
        killed.kill()
        killed.wait()
        before = {*store.temporary.iterdir()}
        assert len(before) == 2
        assert store.record(work, "short").returncode == 0
        (left,) = store.temporary.iterdir()
        assert left in before
        alive.send_signal(signal.SIGTERM)
        alive.communicate(timeout=PATIENCE_S)
        assert [*store.temporary.iterdir()] == []


@pytest.mark.slow
def test_first_runs_at_the_same_time(store: Store, work: str) -> None:
    needs("qemu-x86_64")
    command = [NLAUNCH, "--auto=record", "--backend", "emulate", work, "0"]
    runs = [
        subprocess.Popen(command, env=store.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [one.communicate(timeout=PATIENCE_S * 2) for one in runs]
    assert [one.returncode for one in runs] == [0, 0], said
    (file,) = store.files()
    Plan.load(file)
    assert [*file.parent.iterdir()] == [file] and [*store.temporary.iterdir()] == []


@pytest.mark.parametrize("code", [0, 4])
def test_a_program_that_outlasts_what_is_recorded_of_it_runs_once(
    store: Store, tmp_path: Path, code: int
) -> None:
    """Also if that was over before QEMU had started it."""
    needs("qemu-x86_64")
    (tmp_path / "script").write_text(f"echo once\nexit {code}\n")
    (tmp_path / "script").chmod(0o755)
    words = ("--backend", "emulate", "--record-for", "1e-6", tmp_path / "script")
    result = store.launch(*words, mode="=record")
    assert (result.returncode, result.stdout) == (code, b"once\n"), result.stderr
    assert b"not planned: " in result.stderr
    store.nothing_left()


def test_where_it_is_recorded_is_where_temporary_files_are(store: Store, work: str) -> None:
    needs("qemu-x86_64")
    store.environment["TMPDIR"] = str(store.temporary / "missing")
    result = store.record(work, "4")
    assert result.returncode == 4 and b"first run" in result.stderr
    assert f", in {store.temporary}" not in result.stderr.decode()


def test_what_cannot_be_recorded_runs_once_without(store: Store, work: str) -> None:
    result = store.launch("--backend", "no-such", work, "4", mode="=record")
    assert result.returncode == 4 and result.stdout.count(b"\n") == 1
    assert b"not recorded: no backend" in result.stderr
    store.nothing_left()
