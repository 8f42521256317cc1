"""The backend `faults` on real programs: what it sees, and that the program does not notice."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from numaplan.common import MachineLacksError, UsageError
from numaplan.machine import Machine, Node
from numaplan.profiler.backends.base import Recording, RecordRequest
from numaplan.profiler.backends.perf import faults
from numaplan.profiler.backends.perf.running import run_recorded
from numaplan.profiler.sample_block import SampleBlock
from numaplan.profiler.trace.schema import EVENT_CODE
from tests.support.waiting import until

pytestmark = pytest.mark.system
PAGE = 4096

# Thread k writes pages k, k + THREADS, … of one mapping, first to last; prints the mapping and the tids.
WORKLOAD = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
enum { THREADS = 4, PAGES = 200 };
static char *area;
static pid_t tids[THREADS];
static void *touch(void *number) {
    const long k = (long)number;
    tids[k] = gettid();
    for (long page = k; page < PAGES; page += THREADS)
        area[page * 4096 + 8 * k] = 1;
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    area = mmap(NULL, PAGES * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(area, PAGES * 4096L, MADV_NOHUGEPAGE);
    for (long k = 0; k < THREADS; k++)
        pthread_create(&threads[k], NULL, touch, (void *)k);
    for (long k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    printf("%p %d", (void *)area, getpid());
    for (long k = 0; k < THREADS; k++)
        printf(" %d", tids[k]);
    printf("\n");
    fflush(stdout);
    return argc > 1 ? atoi(argv[1]) : 0;
}
"""


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine.load("local")


@pytest.fixture(scope="module", autouse=True)
def _needs_perf(machine: Machine) -> None:
    capability = faults.FaultsBackend().available(machine)
    if not capability.ok:
        pytest.skip(f"{capability.reason}: {capability.hint}")


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("workload")
    (folder / "touch.c").write_text(WORKLOAD)
    subprocess.run([compiler, "-O1", "-pthread", "-o", "touch", "touch.c"], cwd=folder, check=True)
    return str(folder / "touch")


def record(argv: list[str], folder: Path, machine: Machine, **environment: str) -> Recording:
    request = RecordRequest(
        argv=argv, workdir=folder, machine=machine, environment={**os.environ, **environment}
    )
    return faults.FaultsBackend().record(request, lambda _what, _share: None)


def joined(recording: Recording) -> SampleBlock:
    blocks = list(recording.blocks)
    fields = SampleBlock.__dataclass_fields__
    return SampleBlock(
        **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in fields}
    )


def test_every_first_touch_is_seen_with_its_thread(
    workload: str, tmp_path: Path, machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    before = time.monotonic_ns()
    recording = record([workload, "5"], tmp_path, machine)
    samples = joined(recording)
    words = capfd.readouterr().out.split()
    start, pid, tids = int(words[0], 16), int(words[1]), [int(word) for word in words[2:]]
    inside = (samples.addr >= start) & (samples.addr < start + 200 * PAGE) & (samples.pid == pid)
    pages = (samples.addr[inside] - np.uint64(start)) // PAGE
    found = dict(zip(pages.tolist(), samples.tid[inside].tolist(), strict=True))
    assert not recording.losses
    assert found == {page: tids[page % 4] for page in range(200)}
    assert (samples.event == EVENT_CODE["fault"]).all()
    assert recording.exit_code == 5
    assert before <= recording.start_ns <= samples.time_ns.min()
    assert samples.time_ns.max() <= time.monotonic_ns()
    assert set(samples.cpu.tolist()) <= set(machine.cpus)
    assert set(samples.node.tolist()) <= set(machine.node_ids)
    seen = {thread.tid: thread for thread in recording.threads}
    assert set(tids) | {pid} == set(seen)
    assert [seen[tid].parent_tid for tid in tids] == [pid] * len(tids)
    # A thread is joined before the kernel reports its end, which may then come after the recording is over.
    assert all(seen[tid].end_ns < 0 or seen[tid].start_ns < seen[tid].end_ns for tid in tids)


def test_environment_arguments_and_output_are_the_programs_own(
    tmp_path: Path, machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import os, sys; print(sorted(os.environ.items()), sys.argv[1:], os.getppid())"
    argv = [sys.executable, "-c", code, "a=b", "", "two words", "--", "-o"]
    environment = {"PATH": "/bin:/usr/bin", "LD_BIND_NOW": "1", "X": "1 2"}
    subprocess.run(argv, env=environment, check=True)
    plain = capfd.readouterr().out
    request = RecordRequest(argv=argv, workdir=tmp_path, machine=machine, environment=environment)
    assert faults.FaultsBackend().record(request, lambda _what, _share: None).exit_code == 0
    assert capfd.readouterr().out == plain


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_program_that_dies_of_a_signal(tmp_path: Path, machine: Machine, number: int) -> None:
    recording = record(["/bin/sh", "-c", f"kill -{number} $$"], tmp_path, machine)
    assert recording.exit_code == 128 + number
    assert len(joined(recording))


def test_an_interrupt_keeps_what_was_recorded(tmp_path: Path, machine: Machine) -> None:
    marker = tmp_path / "runs"
    script = f"echo $$ > {marker}; exec sleep 1000"

    def interrupt() -> None:
        until(lambda: marker.exists() and marker.read_text().endswith("\n"))
        os.kill(int(marker.read_text()), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    (tmp_path / "work").mkdir()
    recording = record(["/bin/sh", "-c", script], tmp_path / "work", machine)
    thread.join()
    assert recording.exit_code == 130
    assert len(joined(recording))


def test_processes_that_the_program_starts_are_seen(tmp_path: Path, machine: Machine) -> None:
    recording = record(["/bin/sh", "-c", "/bin/true & /bin/true; wait"], tmp_path, machine)
    samples = joined(recording)
    assert len(set(samples.pid.tolist())) == 3
    assert {"sh", "true"} <= {thread.name for thread in recording.threads}


def test_a_missing_program(tmp_path: Path, machine: Machine) -> None:
    with pytest.raises(UsageError, match="no such program"):
        record(["./not-there"], tmp_path, machine)


def test_a_file_that_is_no_program(tmp_path: Path, machine: Machine) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"\x7fELF nonsense")
    text.chmod(0o755)
    with pytest.raises(UsageError, match="text"):
        record([str(text)], tmp_path, machine)


def test_the_program_does_not_run_unrecorded(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    with pytest.raises(MachineLacksError, match="perf cannot record"):
        run_recorded(
            ["/bin/touch", str(marker)], dict(os.environ), ["-e", "no-such-event"], tmp_path / "out.data"
        )
    assert not marker.exists()


@pytest.mark.parametrize("left_kib", [0, 128])
def test_a_full_disk_is_an_error(tmp_path: Path, machine: Machine, workload: str, left_kib: int) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        (folder / "fill").write_bytes(b"x" * ((252 - left_kib) << 10))
        with pytest.raises(UsageError, match="no space left"):
            record(["/bin/sh", "-c", f"for i in 1 2 3 4 5 6 7 8 9; do {workload}; done"], folder, machine)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_one_node_makes_no_hint_faults() -> None:
    assert not faults.hint_faults_live(Machine(nodes=(Node(id=0, cpus=(0, 1)),)))
