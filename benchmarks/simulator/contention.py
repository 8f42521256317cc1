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
_SETTLED = 1e-3  # change of the delays, relative to the unloaded latency, that ends the iteration


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
        """Speeds after at most `rounds` of iteration, fewer when the delays have settled."""
        fixed = _Fixed.of(demand, self.calibration, self.physics)
        speeds = self._speeds(demand, fixed)
        for _ in range(rounds):
            change = self._delays(speeds.traffic, fixed) - self.delay
            if np.abs(change).max() < _SETTLED:
                break
            sign = np.sign(change)
            turned = sign * self._sign < 0
            self._step = np.where(turned, self._step * 0.5, np.minimum(self._step * 1.1, _LARGEST_STEP))
            self._sign = sign
            self.delay = self.delay + self._step * change
            speeds = self._speeds(demand, fixed)
        return speeds

    def _speeds(self, demand: Demand, fixed: "_Fixed") -> Speeds:
        access_s = fixed.latency_s * (1.0 + self.delay[0] + self.delay[1])
        latency = (demand.places * access_s[demand.node]).sum(axis=1)
        alone = demand.share / (demand.compute_s + fixed.waits * latency)
        rate = meet_at_barriers(alone, demand.task, demand.barrier)
        traffic = (fixed.here * rate) @ fixed.flow
        return Speeds(rate, latency, access_s, traffic)

    def _delays(self, traffic: Floats, fixed: "_Fixed") -> Floats:
        used = np.empty_like(self.delay)
        used[0] = traffic.sum(axis=0) / fixed.controllers
        np.divide(traffic, fixed.links, out=used[1])
        return queueing(used, self.physics.queue)


@dataclass(frozen=True)
class _Fixed:
    """What a demand and a machine say, whatever the delays: latency_s: (K, K); controllers: (K,), links:
    (K, K) bytes a second, endless where memory is local; here: (K, T) which threads are on which node; waits:
    (T,) misses that are waited for, an instruction; flow: (T, K) bytes an instruction."""

    latency_s: Floats
    controllers: Floats
    links: Floats
    here: Floats
    waits: Floats
    flow: Floats

    @staticmethod
    def of(demand: Demand, calibration: Calibration, physics: Physics) -> "_Fixed":
        nodes, bandwidth = len(calibration.latency_ns), calibration.bandwidth
        return _Fixed(
            calibration.latency_ns * 1e-9,
            np.diag(bandwidth),
            np.where(np.eye(nodes, dtype=bool), np.inf, bandwidth),
            (np.arange(nodes)[:, None] == demand.node).astype(np.float64),
            demand.misses / demand.mlp,
            demand.places * (demand.misses * physics.line_bytes)[:, None],
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
