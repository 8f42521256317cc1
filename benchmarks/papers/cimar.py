"""[IMAR]: Experiments A, B (arrivals of Table 4) and C on servers HPL and LPL.

The figures' bars are not in the text; expected values are those the text states. The queues of Experiment C
are drawn, not listed, so ours mix the same benchmarks; work is scaled so that tasks take tens of seconds.
"""

from benchmarks.papers.cimar_rows import rows_a, rows_b_hpl, rows_b_lpl, rows_c
from benchmarks.papers.experiments import THANOS_SAMPLES, Experiment, shortened
from benchmarks.papers.measured import Study, measure
from benchmarks.papers.ours import our_rows
from benchmarks.papers.rows import Row
from benchmarks.simulator.programs import NAS, Task

CONFIGS = (
    "baseline",
    "direct",
    "interleave",
    "cimar",
    "nimar",
    "lmma",
    "cimar+lmma",
    "nimar+lmma",
    "numaplan",
)
ALONE_CONFIGS = ("baseline", "cimar", "nimar", "lmma", "numaplan")
SERVERS = {"HPL": ("hpl-4x10", 10), "LPL": ("lpl-4x20", 20)}
ALONE = ("bt", "cg", "ep", "mg", "sp")
ARRIVALS = (
    ("lu", 0),
    ("bt", 18),
    ("cg", 137),
    ("sp", 190),
    ("lu", 224),
    ("bt", 244),
    ("cg", 269),
    ("sp", 316),
)
QUEUES = (("lu", "cg", "ft", "sp"), ("bt", "mg", "dc"), ("sp", "is", "ua", "cg"), ("ua", "ep", "lu", "mg"))


def experiment_a(server: str) -> list[Experiment]:
    """One program at a time with all cores."""
    machine, cores = SERVERS[server]
    return [
        Experiment(
            f"A {server} {name}",
            machine,
            shortened([Task(NAS[name], 4 * cores)], 1.5),
            samples=THANOS_SAMPLES,
        )
        for name in ALONE
    ]


def experiment_b(server: str) -> Experiment:
    """Eight tasks that arrive by Table 4 (half the times on LPL), 8 threads each (16 on LPL)."""
    machine, _ = SERVERS[server]
    late = 1.0 if server == "HPL" else 0.5
    threads = 8 if server == "HPL" else 16
    tasks = [Task(NAS[name], threads, at_s=at * late) for name, at in ARRIVALS]
    return Experiment(
        f"B {server}",
        machine,
        shortened(tasks, 1.2),
        tuple(row % 4 for row in range(8)),
        samples=THANOS_SAMPLES,
    )


def experiment_c(server: str) -> Experiment:
    """Four users with a queue each, a quarter of the cores for each."""
    machine, cores = SERVERS[server]
    tasks: list[Task] = []
    users: list[int] = []
    for user, queue in enumerate(QUEUES):
        for place, name in enumerate(queue):
            tasks.append(Task(NAS[name], cores, after=len(tasks) - 1 if place else -1))
            users.append(user)
    return Experiment(f"C {server}", machine, shortened(tasks, 0.6), tuple(users), samples=THANOS_SAMPLES)


def rows(study: Study) -> list[Row]:
    """All rows of the paper; A, and B on LPL, carry no headline."""
    found: list[Row] = []
    for server in SERVERS:
        a = measure(experiment_a(server), ALONE_CONFIGS, study.fewer())
        (b,) = measure([experiment_b(server)], CONFIGS, study if server == "HPL" else study.fewer())
        (c,) = measure([experiment_c(server)], CONFIGS, study)
        found += rows_a(server, a) + (rows_b_hpl(b) if server == "HPL" else rows_b_lpl(b)) + rows_c(server, c)
        found += our_rows(b, "tasks") + our_rows(c, "wall")
    return found
