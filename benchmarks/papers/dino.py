"""[DINO]: migrations an hour (Table 1) and how DI-Plain, DI-Migrate and DINO compare with the default.

Four Barcelonas, Linux without AutoNUMA as in the paper. SPEC CPU mixes run sixteen programs an eighth as
long as real ones, each again and again until all have ended twice; the second time counts. SPEC MPI jobs run
sixteen processes whose miss rates change from phase to phase.
"""

from benchmarks.papers.experiments import Experiment, shortened
from benchmarks.papers.measured import Measured, Study, measure
from benchmarks.papers.ours import our_rows
from benchmarks.papers.rows import Row, claim_row, interval, ratio_row
from benchmarks.simulator.programs import MPI, SPEC, Task
from benchmarks.simulator.system import Habits

PAPER = "dino"
CONFIGS = ("baseline", "di-plain", "di-migrate", "dino", "numaplan")
MPI_CONFIGS = ("baseline", "di-migrate", "dino", "numaplan")
MACHINE = "barcelona-4x4"
SAMPLES = 64.0  # section 4: under 1 % of a core's time
HABITS = Habits(autonuma=False)
MIX = tuple(SPEC)
TABLE_1 = {
    "di-migrate": {
        "soplex": 36,
        "milc": 22,
        "lbm": 11,
        "gamess": 47,
        "namd": 41,
        "leslie": 381,
        "lammps": 135,
        "GAPgeofem": 237,
        "socorro": 340,
        "lu": 256,
    },
    "dino": {
        "soplex": 8,
        "milc": 6,
        "lbm": 5,
        "gamess": 7,
        "namd": 6,
        "leslie": 2,
        "lammps": 1,
        "GAPgeofem": 3,
        "socorro": 2,
        "lu": 1,
    },
}
_ALIKE = (
    "controllers that are full serve alike: accesses do not show who wants more, misses an instruction do"
)
_RARE = (
    "runs are short here, programs an eighth as long: layouts at a start or an end count for more of an hour"
)
_SECOND = "miss rates that lie close change places in most seconds here; the paper's were calmer"


def rows(study: Study) -> list[Row]:
    """All rows of the paper."""
    spec = measure([experiment_spec()], CONFIGS, study)
    measured = spec + measure(experiments_mpi(), MPI_CONFIGS, study)
    return (
        _ordering(measured[0], measured[1:])
        + _table_1(measured[0], measured[1:])
        + [row for each in measured for row in our_rows(each, "tasks", _ALIKE)]
    )


def experiment_spec() -> Experiment:
    """Sixteen programs for sixteen cores."""
    tasks = shortened([Task(SPEC[name], 1) for name in MIX], 0.125)
    return Experiment(
        "SPEC CPU mix", MACHINE, tasks, habits=HABITS, limit_s=20_000.0, rounds=2, samples=SAMPLES
    )


def experiments_mpi() -> list[Experiment]:
    """One job at a time."""
    return [
        Experiment(
            f"SPEC MPI {name}", MACHINE, (Task(program, 16, processes=16),), habits=HABITS, samples=SAMPLES
        )
        for name, program in MPI.items()
    ]


def hourly(measured: Measured, config: str, job: int) -> list[float]:
    """By seed, moves to another node an hour and process; the memory goes along."""
    return [
        outcome.migrations.get(job, [0, 0])[1]
        / measured.experiment.tasks[job].processes
        / (float(outcome.ran_s[job]) / 3600)
        for outcome in measured.outcomes[config]
    ]


def _table_1(spec: Measured, jobs: list[Measured]) -> list[Row]:
    cells = [(spec, name, MIX.index(name)) for name in ("soplex", "milc", "lbm", "gamess", "namd")]
    cells += [(job, name, 0) for job, name in zip(jobs, MPI, strict=True)]
    found = [_cell(config, *cell) for config in TABLE_1 for cell in cells]
    return found + [_orders(measured, name, job) for measured, name, job in cells]


def _cell(config: str, measured: Measured, name: str, job: int) -> Row:
    """One number of the table; in direction when DI-Migrate moves more than DINO here too."""
    values = {each: interval(hourly(measured, each, job)) for each in TABLE_1}
    mean, low, high = values[config]
    paper = TABLE_1[config][name]
    near = 0.5 <= (mean + 1) / (paper + 1) <= 2.0
    ordered = values["dino"][0] < values["di-migrate"][0]
    return Row(
        paper=PAPER,
        table="1",
        row=f"{config}: {name}, migrations an hour",
        paper_value=float(paper),
        value=round(mean, 1),
        low=round(low, 1),
        high=round(high, 1),
        seeds=len(measured.outcomes[config]),
        verdict="size" if near else "direction" if ordered else "no",
        why="" if near else _SECOND if config == "di-migrate" else _RARE,
    )


def _orders(measured: Measured, name: str, job: int) -> Row:
    """DINO's migrations over DI-Migrate's: two orders below for MPI."""
    dino, migrate = hourly(measured, "dino", job), hourly(measured, "di-migrate", job)
    ratio = [(a + 1) / (b + 1) for a, b in zip(dino, migrate, strict=True)]
    paper = (TABLE_1["dino"][name] + 1) / (TABLE_1["di-migrate"][name] + 1)
    return claim_row(
        PAPER,
        "1",
        f"{name}: dino over di-migrate",
        f"{paper:.3f}",
        ratio,
        0.35,
        _RARE,
    )


def _ordering(spec: Measured, jobs: list[Measured]) -> list[Row]:
    def jobs_mean(config: str) -> list[float]:
        by_job = [job.ratios(config) for job in jobs]
        return [sum(values) / len(values) for values in zip(*by_job, strict=True)]

    worst = max(jobs, key=lambda job: sum(job.ratios("di-migrate")))
    return [
        claim_row(
            PAPER,
            "Figure 11",
            "SPEC CPU, DI-Plain over default",
            "hurts many programs",
            spec.ratios("di-plain", what="tasks"),
            1.0,
            "the default displaces threads too",
            above=True,
        ),
        claim_row(
            PAPER,
            "Figure 11",
            "SPEC CPU, DI-Migrate over default",
            "improves",
            spec.ratios("di-migrate", what="tasks"),
            1.0,
            "memory that follows every change of order costs what the better order gains",
        ),
        claim_row(
            PAPER,
            "Figure 11",
            "SPEC CPU, DINO over DI-Migrate",
            "slightly better",
            spec.ratios("dino", "di-migrate", "tasks"),
            1.0,
        ),
        ratio_row(
            PAPER,
            "Figure 12",
            f"SPEC MPI, worst job under DI-Migrate ({worst.experiment.name})",
            1.25,
            worst.ratios("di-migrate"),
            {"direction": _SECOND},
        ),
        claim_row(
            PAPER,
            "Figure 12",
            "SPEC MPI, DINO over default",
            "improves or no loss",
            jobs_mean("dino"),
            1.01,
            "first touch left nothing to improve",
        ),
        claim_row(
            PAPER,
            "Figure 12",
            "SPEC MPI, DINO over DI-Migrate",
            "better",
            [a / b for a, b in zip(jobs_mean("dino"), jobs_mean("di-migrate"), strict=True)],
            1.0,
        ),
    ]
