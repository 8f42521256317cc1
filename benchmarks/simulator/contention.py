"""How fast threads run: equilibrium of their speed and the delay their misses see at controllers and links.

A thread needs cpi / clock and misses x latency / mlp for an instruction. A miss from node n to memory of k
takes latency[n, k] x (1 + D_k + D_nk), where a resource at utilisation rho adds D = queue x rho^2 / (1 -
rho): the controller of k, and the link between n and k when they differ. Slower threads load resources
less, so the delays that agree with the speeds they cause are found by damped iteration, from those of the
step before.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.calibration import PHYSICS, Calibration, Physics

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_KNEE = 0.95  # from here the delay grows as its tangent: finite however great the demand
_FIRST_STEP, _LARGEST_STEP = 0.5, 0.7


@dataclass(frozen=True)
class Demand:
    """(T,) node row, seconds an instruction without misses, misses an instruction, misses in flight, cpu
    share; places: (T, K) share of accesses by node; task: (T,) task row; barrier: (J,) by task."""

    node: Ints
    compute_s: Floats
    misses: Floats
    mlp: Floats
    share: Floats
    places: Floats
    task: Ints
    barrier: Floats


@dataclass(frozen=True)
class Speeds:
    """rate: (T,) instructions a second; latency_s: (T,) of a miss, mean; access_s: (K, K) by nodes;
    traffic: (K, K) bytes a second."""

    rate: Floats
    latency_s: Floats
    access_s: Floats
    traffic: Floats


@dataclass
class Contention:
    """The delays of one machine, kept from step to step."""

    calibration: Calibration
    physics: Physics = PHYSICS
    delay: Floats = field(init=False)
    _step: Floats = field(init=False)
    _sign: Floats = field(init=False)

    def __post_init__(self) -> None:
        shape = self.calibration.latency_ns.shape
        self.delay = np.zeros((2, *shape))  # controllers (of the column), links
        self.stir()

    def stir(self) -> None:
        """Something changed: take large steps again."""
        self._step = np.full(self.delay.shape, _FIRST_STEP)
        self._sign = np.zeros(self.delay.shape)

    def solve(self, demand: Demand, rounds: int) -> Speeds:
        """Speeds after `rounds` of iteration."""
        nodes = len(self.calibration.latency_ns)
        here = np.zeros((len(demand.node), nodes))
        here[np.arange(len(demand.node)), demand.node] = 1.0
        speeds = self._speeds(demand, here)
        for _ in range(rounds):
            goal = self._delays(speeds.traffic)
            change = goal - self.delay
            sign = np.sign(change)
            turned = sign * self._sign < 0
            self._step = np.where(turned, self._step * 0.5, np.minimum(self._step * 1.1, _LARGEST_STEP))
            self._sign = sign
            self.delay = self.delay + self._step * change
            speeds = self._speeds(demand, here)
        return speeds

    def _speeds(self, demand: Demand, here: Floats) -> Speeds:
        access_s = self.calibration.latency_ns * 1e-9 * (1.0 + self.delay.sum(axis=0))
        latency = (demand.places * access_s[demand.node]).sum(axis=1)
        alone = demand.share / (demand.compute_s + demand.misses * latency / demand.mlp)
        rate = meet_at_barriers(alone, demand.task, demand.barrier)
        flow = rate * demand.misses * self.physics.line_bytes
        traffic = here.T @ (demand.places * flow[:, None])
        return Speeds(rate, latency, access_s, traffic)

    def _delays(self, traffic: Floats) -> Floats:
        bandwidth = self.calibration.bandwidth
        controllers = traffic.sum(axis=0) / np.diag(bandwidth)
        links = np.where(np.eye(len(traffic), dtype=bool), 0.0, traffic / bandwidth)
        return np.stack(
            [
                np.broadcast_to(queueing(controllers, self.physics.queue), traffic.shape),
                queueing(links, self.physics.queue),
            ]
        )


def queueing(utilisation: Floats, weight: float) -> Floats:
    """Relative delay weight x rho^2 / (1 - rho), continued by its tangent beyond the knee."""
    low = np.minimum(utilisation, _KNEE)
    slope = _KNEE * (2.0 - _KNEE) / (1.0 - _KNEE) ** 2
    delay: Floats = weight * (low**2 / (1.0 - low) + slope * np.maximum(utilisation - _KNEE, 0.0))
    return delay


def meet_at_barriers(rate: Floats, task: Ints, barrier: Floats) -> Floats:
    """(T,) rates of threads that wait for the slowest of their task for `barrier` of their speed."""
    count = len(barrier)
    slowest = np.full(count, np.inf)
    np.minimum.at(slowest, task, rate)
    tied = barrier[task]
    met: Floats = (1.0 - tied) * rate + tied * np.minimum(rate, slowest[task])
    return met
