"""Recordings, plans and counts of one program on one machine, kept as files in its own folder."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from numaplan.common import NumaplanError, atomic_output
from numaplan.machine import Machine

from .program import Program, Ready, make_ready

BASELINES = ("default", "compact", "interleave")
ONLINE = ("online-alone", "online")  # AutoNUMA off beside the policy, or on
BESIDE_PLAN = (*BASELINES, ONLINE[0])  # what is counted beside the plan
_LIMIT = 300  # seconds of a counted run
_RECORD_LIMIT = 900
_SAID = ("predicted", "provenance", "method", "objective")  # parts of a plan that place nothing
_BIN = Path(sys.executable).parent


class ProgramFailedError(NumaplanError):
    """A step that did not work."""


@dataclass(frozen=True)
class Place:
    """Where what is known of one program on one machine is kept."""

    folder: Path
    machine: str

    @property
    def plan(self) -> Path:
        """The plan, made anew each time."""
        return self.folder / f"plan-{self.machine}.json"

    @property
    def counts(self) -> Path:
        """What the lab counted."""
        return self.folder / f"counts-{self.machine}.json"

    @property
    def failed(self) -> Path:
        """Why there are no counts."""
        return self.folder / f"failed-{self.machine}.txt"

    @property
    def trace(self) -> Path:
        """The recording."""
        return self.folder / f"trace-{self.machine}.db"


def measure(program: Program, keep: Path, machine: str, *, count: bool, configs: Sequence[str]) -> None:
    """Do what is missing: the recording, a plan from it, and what it comes to in the lab.

    configs: what is counted beside the plan, or without one. Raises NumaplanError where a step fails.
    """
    place = Place(keep / program.name, machine)
    place.folder.mkdir(parents=True, exist_ok=True)
    ready = make_ready(program, keep / "build", len(Machine.load(machine).cpus))
    try:
        if not place.trace.exists():
            _record(ready, place)
        _run(["nmap", "plan", str(place.trace), "--machine", machine, "-o", str(place.plan)], ready, 300)
    except NumaplanError:
        place.plan.unlink(missing_ok=True)  # of another recording or planner
        raise
    finally:
        if count:
            _count(ready, place, configs)


def _record(ready: Ready, place: Place) -> None:
    partial = place.folder / f"partial-{place.machine}.db"
    command = ["nprof", "record", "--backend", ready.program.backend, "-o", str(partial)]
    command += ["--machine", place.machine]
    command += ["--multiprocess"] * ready.program.multiprocess
    started = perf_counter()
    try:
        done = _run([*command, "--", *ready.argv], ready, _RECORD_LIMIT)
        said = done.stdout + done.stderr
        (place.folder / f"recorded-{place.machine}.txt").write_text(
            f"{said}\n{perf_counter() - started:.0f} s\n"
        )
        if ready.program.checked not in said:
            raise ProgramFailedError(f"recorded, but it did not say {ready.program.checked!r}")
        partial.rename(place.trace)
    finally:
        partial.unlink(missing_ok=True)


def _count(ready: Ready, place: Place, configs: Sequence[str]) -> None:
    """Count in one boot what has not been counted: configurations, and the plan where it is another."""
    kept = load(place.counts)
    planned = load(place.plan)
    digest = digest_of(planned)
    missing = [name for name in configs if name not in kept.get("configs", {})]
    if planned and kept.get("plan") != digest:
        missing.append("plan")
    if not missing:
        return
    command = ["nlab", "compare", "--cache", "--json", "--machine", place.machine, "--repeat", "1"]
    command += ["--timeout", str(_LIMIT), "--configs", ",".join(missing)]
    command += ["--plan", str(place.plan)] * ("plan" in missing)
    command += ["--online", "numaplan"] * bool({*ONLINE} & {*missing})
    done = _run([*command, "--", *ready.argv], ready, 2 * _LIMIT * len(missing), codes=(0, 1))
    found = json.loads(done.stdout)["configs"]
    bad = {name: why for name, config in found.items() if (why := _failure(config["runs"]))}
    good = {name: config["runs"] for name, config in found.items() if name not in bad}
    kept["configs"] = {**kept.get("configs", {}), **good}
    kept["failed"] = bad
    kept["plan"] = digest if "plan" in good else kept.get("plan", "")
    with atomic_output(place.counts) as output:
        output.write_text(json.dumps(kept))


def _failure(runs: Sequence[dict[str, Any]]) -> str:
    """How a configuration's program failed; it is run again the next time."""
    bad = [run for run in runs if run["exit_code"]]
    return f"exit code {bad[0]['exit_code']}: {bad[0].get('said', '')}".rstrip(": ") if bad else ""


def digest_of(plan: dict[str, Any]) -> str:
    """Of what a plan does, whatever it predicts and however it was found."""
    placed = {key: value for key, value in plan.items() if key not in _SAID}
    return sha256(json.dumps(placed, sort_keys=True).encode()).hexdigest()


def load(path: Path) -> dict[str, Any]:
    """A JSON document that was kept; empty where there is none."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return content


def _run(
    command: list[str], ready: Ready, limit: float, codes: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            [str(_BIN / command[0]), *command[1:]],
            env=ready.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailedError(f"{command[0]} {command[1]}: not done after {limit:.0f} s") from error
    if done.returncode not in codes or (done.returncode and not done.stdout):
        said = (done.stderr or done.stdout).strip().splitlines()
        its_own = [line for line in said if not line.startswith("nprof:")] or said or [""]
        raise ProgramFailedError(f"{command[0]} {command[1]} ended with {done.returncode}: {its_own[-1]}")
    return done
