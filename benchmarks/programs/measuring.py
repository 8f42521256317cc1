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


def measure(program: Program, keep: Path, machine: str, *, runs: int, configs: Sequence[str]) -> None:
    """Do what is missing: the recording, a plan from it, and what it comes to in the lab.

    runs: of each configuration that are to be counted; configs: what is counted beside the plan, or without
    one. Raises NumaplanError where a step fails.
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
        _count(ready, place, runs, configs)


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


def _count(ready: Ready, place: Place, runs: int, configs: Sequence[str]) -> None:
    """Count what has not been counted: runs of configurations, and of the plan where it is another."""
    kept = load(place.counts)
    planned = load(place.plan)
    digest = digest_of(planned)
    have: dict[str, list[dict[str, Any]]] = kept.get("configs", {})
    if kept.get("plan") != digest:
        have.pop("plan", None)
    lacking = {name: runs - len(have.get(name, [])) for name in [*configs, *(["plan"] if planned else [])]}
    bad: dict[str, str] = {}
    errors: list[NumaplanError] = []
    for repeat in sorted({number for number in lacking.values() if number > 0}):
        # as many as share a boot of the guest
        try:
            found = _compared(ready, place, repeat, [name for name, few in lacking.items() if few == repeat])
        except NumaplanError as error:
            errors.append(error)
            continue
        for name, more in found.items():
            if why := _failure(more):
                bad[name] = why
            if good := [run for run in more if not run["exit_code"]]:
                have[name] = [*have.get(name, []), *good]
        kept |= {"configs": have, "failed": bad, "plan": digest if "plan" in have else ""}
        with atomic_output(place.counts) as output:
            output.write_text(json.dumps(kept))
    if errors:
        raise errors[0]


def _compared(
    ready: Ready, place: Place, repeat: int, configs: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """Runs of configurations in one boot of the lab's guest."""
    command = ["nlab", "compare", "--json", "--machine", place.machine, "--repeat", str(repeat)]
    command += ["--timeout", str(_LIMIT), "--configs", ",".join(configs)]
    command += ["--plan", str(place.plan)] * ("plan" in configs)
    command += ["--online", "numaplan"] * bool({*ONLINE} & {*configs})
    limit = 2 * _LIMIT * len(configs) * repeat
    done = _run([*command, "--", *ready.argv], ready, limit, codes=(0, 1))
    return {name: config["runs"] for name, config in json.loads(done.stdout)["configs"].items()}


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
