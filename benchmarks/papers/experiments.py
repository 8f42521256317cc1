"""Experiments on the simulator: tasks, machine, system, and every configuration over seeds, in parallel."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers import kept
from benchmarks.simulator.calibration import calibration
from benchmarks.simulator.observe import SAMPLES
from benchmarks.simulator.programs import Task
from benchmarks.simulator.run import Outcome, Setup, simulate
from benchmarks.simulator.system import Habits
from numaplan.launcher.online.registry import make_policy

PLACEMENTS = {"baseline": "os", "direct": "direct", "interleave": "interleave"}
THANOS_SAMPLES = 2000.0  # a second and thread, of the tool of cimar-nimar-lmma.txt
# Single pages that LMMA names, with those preloaded, make up so much of a 4 MiB block: so many samples stand
# behind the simulator's, each moves 1 + S_preload pages of 1024.
LMMA_GRAIN = THANOS_SAMPLES / SAMPLES * 9 / 1024


FIRST_SEED = 1000  # what is reported; machines, programs and policies were looked at with smaller ones


RESAMPLED = 1000


@dataclass(frozen=True)
class Study:
    """seeds: how many; folder: where outcomes are kept and taken from; first: seed of those."""

    seeds: int
    folder: Path | None = None
    first: int = FIRST_SEED


@dataclass(frozen=True)
class Experiment:
    """users: for `direct`, the node each task is bound to; rounds, samples: as in `Setup`."""

    name: str
    machine: str
    tasks: tuple[Task, ...]
    users: tuple[int, ...] = ()
    habits: Habits = field(default_factory=Habits)
    limit_s: float = 4000.0
    rounds: int = 1
    samples: float = 500.0

    def setup(self, config: str, seed: int) -> Setup:
        """One run: `baseline`, `direct`, `interleave`, or a policy's name."""
        fixed = config in PLACEMENTS
        settings = ["S_preload=0"] if "lmma" in config else []  # blocks are whole stretches already
        return Setup(
            calibration=calibration(self.machine),
            tasks=self.tasks,
            policy=None if fixed else make_policy(config, settings),
            placement=PLACEMENTS.get(config, "os"),
            node_of=lambda number: self.users[number] if self.users else number,
            habits=self.habits,
            grain=LMMA_GRAIN if "lmma" in config else 1.0,
            confines=config == "numaplan",
            limit_s=self.limit_s,
            rounds=self.rounds,
            samples=self.samples,
            seed=seed,
        )


@dataclass(frozen=True)
class Measured:
    """Outcomes by configuration, one a seed."""

    experiment: Experiment
    outcomes: dict[str, list[Outcome]]

    def ratios(self, config: str, to: str = "baseline", what: str = "wall") -> list[float]:
        """By seed, a configuration over another of the same seed: wall time, mean task time, remote share."""
        pairs = zip(self.values(config, what), self.values(to, what), strict=True)
        return [a / b if b > 0 else 1.0 for a, b in pairs]

    def values(self, config: str, what: str = "wall") -> list[float]:
        """By seed."""
        pick = {
            "wall": lambda outcome: outcome.wall_s,
            "tasks": lambda outcome: float(np.nanmean(outcome.task_s)),
            "remote": lambda outcome: outcome.remote,
        }[what]
        return [pick(outcome) for outcome in self.outcomes[config]]

    def task_ratios(self, config: str, to: str = "baseline") -> NDArray[np.float64]:
        """(J,) by task, mean over seeds of its time over that of the other configuration."""
        return np.mean(
            [a.task_s / b.task_s for a, b in zip(self.outcomes[config], self.outcomes[to], strict=True)],
            axis=0,
        )

    def spread_ratios(self, config: str, to: str) -> list[float]:
        """How unsteady task times are from seed to seed, over the other configuration's: all seeds, then
        resampled.

        Unsteady: standard deviation over seeds relative to the mean, averaged over tasks.
        """
        pair = [np.array([outcome.task_s for outcome in self.outcomes[name]]) for name in (config, to)]
        draws = np.random.default_rng(0).integers(0, len(pair[0]), (RESAMPLED, len(pair[0])))
        return [
            _unsteady(pair[0][rows]) / max(_unsteady(pair[1][rows]), 1e-9) for rows in [slice(None), *draws]
        ]


def _unsteady(times: NDArray[np.float64]) -> float:
    """times: (seeds, tasks)."""
    return float((times.std(axis=0) / times.mean(axis=0)).mean())


def measure(experiments: Sequence[Experiment], configs: Iterable[str], study: Study) -> list[Measured]:
    """Every configuration of every experiment with every seed, on all cpus."""
    names = list(configs)
    seeds = range(study.first, study.first + study.seeds)
    jobs = [
        (experiment, config, seed, study.folder)
        for experiment in experiments
        for seed in seeds
        for config in names
    ]
    workers = len(os.sched_getaffinity(0))
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            outcomes = list(pool.map(_one, jobs, chunksize=1))
    else:
        outcomes = [_one(job) for job in jobs]
    table: dict[tuple[str, str], list[Outcome]] = {}
    for (experiment, config, *_), outcome in zip(jobs, outcomes, strict=True):
        table.setdefault((experiment.name, config), []).append(outcome)
    return [
        Measured(experiment, {config: table[experiment.name, config] for config in names})
        for experiment in experiments
    ]


def _one(job: tuple[Experiment, str, int, Path | None]) -> Outcome:
    experiment, config, seed, folder = job
    if folder is None:
        return simulate(experiment.setup(config, seed))
    asked = (experiment, config, seed)
    outcome = kept.load(folder, asked)
    if outcome is None:
        outcome = simulate(experiment.setup(config, seed))
        kept.save(folder, asked, outcome)
    return outcome


def shortened(tasks: Sequence[Task], factor: float) -> tuple[Task, ...]:
    """The tasks with their work scaled."""
    return tuple(replace(task, program=task.program.scaled(factor)) for task in tasks)
