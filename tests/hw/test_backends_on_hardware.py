"""The hardware samplers on the machines that have them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from numaplan.common import NumaplanError
from numaplan.machine import Machine
from numaplan.profiler.backends.choice import HARDWARE, backend_of
from numaplan.profiler.recording.record import RecordOptions, record
from numaplan.profiler.trace.reader import Trace

pytestmark = pytest.mark.hw
THREADS, MEGABYTES = 2, 64

# Each thread writes and reads its own half of one mapping, again and again.
WORKLOAD = rf"""
#include <pthread.h>
#include <stdlib.h>
enum {{ THREADS = {THREADS}, WORDS = {MEGABYTES} << 17 }};
static volatile long *area;
static int rounds;
static void *work(void *number) {{
    const long from = (long)number * (WORDS / THREADS);
    for (int round = 0; round < rounds; round++)
        for (long i = from; i < from + WORDS / THREADS; i += 3)
            area[i] += i;
    return NULL;
}}
int main(int argc, char **argv) {{
    rounds = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t threads[THREADS];
    area = calloc(WORDS, sizeof *area);
    for (long k = 0; k < THREADS; k++)
        pthread_create(&threads[k], NULL, work, (void *)k);
    for (long k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    return 0;
}}
"""


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("workload")
    (folder / "halves.c").write_text(WORKLOAD)
    subprocess.run([compiler, "-O1", "-pthread", "-o", "halves", "halves.c"], cwd=folder, check=True)
    return folder / "halves"


# The emulation, which is everywhere, shows that this test can be passed and failed.
@pytest.mark.parametrize("name", [*HARDWARE, "emulate"])
def test_each_thread_is_seen_in_its_own_half(name: str, workload: Path, tmp_path: Path) -> None:
    machine = Machine.load("local")
    try:
        capability = backend_of(name).available(machine)
    except NumaplanError as error:
        pytest.skip(f"{name}: {error}")
    if not capability.ok:
        pytest.skip(f"{name}: {capability.reason} — {capability.hint}")
    argv = [str(workload), "1" if name == "emulate" else "20"]
    summary = record(argv, RecordOptions(output=tmp_path / "trace.db", backend=name, period=1000))
    assert summary.exit_code == 0 and summary.backend == name
    with Trace.open(tmp_path / "trace.db") as trace:
        halves = trace.rows(
            "SELECT t.path, count(*), avg(((s.addr - r.start_addr) / r.bytes < 0.5)::INTEGER) FROM samples s"
            " JOIN regions r USING (region) JOIN threads t ON t.thread = s.thread"
            f" WHERE r.bytes >= {MEGABYTES << 20} AND t.path <> '0' GROUP BY 1 ORDER BY 1"
        )
        levels = trace.rows("SELECT DISTINCT level::VARCHAR FROM samples")
    assert [path for path, _, _ in halves] == ["0.1", "0.2"]
    assert all(count > 100 for _, count, _ in halves)
    assert halves[0][2] > 0.95 and halves[1][2] < 0.05
    assert len(levels) > 1
