"""Experiments on the simulator: tasks, machine, system, and what each configuration makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchmarks.simulator.calibration import calibration
from benchmarks.simulator.observe import SAMPLES
from benchmarks.simulator.programs import Task
from benchmarks.simulator.run import Setup
from benchmarks.simulator.system import Habits
from numaplan.mapper.online.registry import make_policy

PLACEMENTS = {"baseline": "os", "direct": "direct", "interleave": "interleave"}
THANOS_SAMPLES = 2000.0  # a second and thread, of the tool of [IMAR]
# Single pages that LMMA names, with those preloaded, make up so much of a 4 MiB block: so many samples stand
# behind the simulator's, each moves 1 + S_preload pages of 1024.
LMMA_GRAIN = THANOS_SAMPLES / SAMPLES * 9 / 1024


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


def shortened(tasks: Sequence[Task], factor: float) -> tuple[Task, ...]:
    """The tasks with their work scaled."""
    return tuple(replace(task, program=task.program.scaled(factor)) for task in tasks)
