"""Every configuration of an experiment over seeds, in parallel; ratios of what came of it."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers import kept
from benchmarks.papers.experiments import Experiment
from benchmarks.papers.rows import RESAMPLED
from benchmarks.simulator.run import Outcome, simulate

FIRST_SEED = 1000  # what is reported; machines, programs and policies were looked at with smaller ones
FEWER = 8  # seeds, where no headline hangs on it


@dataclass(frozen=True)
class Study:
    """seeds: how many; folder: where outcomes are kept and taken from; first: seed of those."""

    seeds: int
    folder: Path | None = None
    first: int = FIRST_SEED

    def fewer(self) -> "Study":
        """For what carries no headline."""
        return replace(self, seeds=min(self.seeds, FEWER))


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

    def worst_task(self, config: str, to: str = "baseline", *, best: bool = False) -> list[float]:
        """By seed, the time over the other configuration's of the task whose mean is worst (or best)."""
        ratios = self._task_ratios(config, to)
        mean = ratios.mean(axis=0)
        column: list[float] = ratios[:, np.argmin(mean) if best else np.argmax(mean)].tolist()
        return column

    def _task_ratios(self, config: str, to: str) -> NDArray[np.float64]:
        """(seeds, J) times of tasks over those of the other configuration with the same seed."""
        pairs = zip(self.outcomes[config], self.outcomes[to], strict=True)
        return np.array([a.task_s / b.task_s for a, b in pairs])


def spread_ratios(measured: Sequence[Measured], config: str, to: str) -> list[float]:
    """How unsteady task times are from seed to seed, over the other configuration's: all seeds, then
    resampled.

    Unsteady: standard deviation over seeds relative to the mean, averaged over all tasks of these.
    """
    pair = [
        np.hstack([[outcome.task_s for outcome in each.outcomes[name]] for each in measured])
        for name in (config, to)
    ]
    draws = np.random.default_rng(0).integers(0, len(pair[0]), (RESAMPLED, len(pair[0])))
    return [_unsteady(pair[0][rows]) / max(_unsteady(pair[1][rows]), 1e-9) for rows in [slice(None), *draws]]


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
