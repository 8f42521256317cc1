"""The command `perf record`: whether it is installed, its arguments, and whether they work."""

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from numaplan.common import MachineLacksError, NumaplanError, lacks_files, temporary_folder

from ..base import PerfChoices

INSTALL = "apt-get install linux-perf"
# No build ids, which our library logs; no BPF programs, for which perf would take a second longer to end.
_PLAIN = ("-B", "-N", "--no-bpf-event")
_OLDEST = (5, 10)  # `perf record --control` that answers, by descriptors
# What these count is ns of time, not accesses: asked for each, the kernel takes every tenth µs, which stalls
# virtual machines. So they come as often as perf lets them by itself, 4000 times a second, or less often.
_CLOCK = re.compile(r"(?<![^,{])(cpu-clock|task-clock)(?:(?://|:)(\w+)|//|(?=[,}]|$))")
_TICK_NS = 250_000
_PROBE_SECONDS = 20
_PROBE_BYTES = 1 << 18  # more than such a recording takes


def find_perf() -> str:
    """The perf command; raises MachineLacksError if there is none."""
    found = shutil.which("perf")
    if found is None:
        raise MachineLacksError("perf is not installed", INSTALL)
    return found


def recording_perf() -> str:
    """The perf command, which can be started on a waiting program; raises MachineLacksError if it cannot."""
    return _checked(find_perf())


@cache
def _checked(found: str) -> str:
    try:
        answer = subprocess.run(
            [found, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
            process_group=0,  # what our group is sent must not look like its answer
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if lacks_files(error):
            raise
        raise MachineLacksError(f"{found} does not run: {error}", INSTALL) from error
    if answer.returncode:  # distributions install a script that looks for the running kernel's own perf
        lines = (line.strip() for line in (answer.stderr + answer.stdout).splitlines())
        problem = next(filter(None, lines), f"it ends with {answer.returncode}")
        raise MachineLacksError(f"{found} does not run: {problem[:120]}", INSTALL)
    version = re.search(r"(\d{1,4})\.(\d{1,4})", answer.stdout)
    if version and (int(version[1]), int(version[2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise MachineLacksError(
            f"perf {version[0]} is too old: it has no --control", f"install perf {oldest} or later: {INSTALL}"
        )
    return found


def perf_arguments(
    events: Sequence[str], options: Sequence[str], period: int, choices: PerfChoices
) -> list[str]:
    """What comes after `perf record`, but for the target and the output."""
    rate = ["-F", str(choices.freq)] if choices.freq else ["-c", str(period)]
    limit = ["--max-size", f"{choices.max_bytes}B"] if choices.max_bytes else []
    chosen = choices.events if choices.freq else [_paced(event, period) for event in choices.events]
    named = [word for event in chosen or events for word in ("-e", event)]
    calls = ["--call-graph", "fp"] if choices.call_graph else []
    return [*_PLAIN, *named, *rate, "--sample-cpu", *calls, *options, *limit]


def _paced(event: str, period: int) -> str:
    """The event, or events, with clocks that tick no faster than they should."""

    def clock(found: re.Match[str]) -> str:
        name, mode = found[1], found[2] or ""
        return f"{name}/period={max(period, _TICK_NS)},name={name}{mode and ':'}{mode}/{mode}"

    return _CLOCK.sub(clock, event)


def target_of(pids: Sequence[int]) -> list[str]:
    """perf's arguments for these processes and all that they start; without any for whatever runs."""
    return ["-p", ",".join(map(str, pids))] if pids else ["-a"]


def probe(arguments: Sequence[str], works: Callable[[Path], bool] = Path.exists) -> str:
    """What goes wrong when `true` is recorded; empty when nothing does and its recording `works`.

    Raises MachineLacksError where there is no room for the try.
    """
    program = shutil.which("true")
    if program is None:
        return "no program 'true' to try it on"
    with temporary_folder("numaplan-") as folder:
        output = folder / "probe.data"
        command = [recording_perf(), "record", "-q", *arguments, "-o", str(output), "--", program]
        try:
            # In a group of its own: perf takes a stop (Ctrl-Z) of what it records for its end.
            done = subprocess.run(
                command, capture_output=True, timeout=_PROBE_SECONDS, check=False, process_group=0
            )
            if done.returncode == 0 and works(output):
                return ""
        except (OSError, subprocess.TimeoutExpired, NumaplanError) as error:
            return str(error)
        if shutil.disk_usage(folder).free < _PROBE_BYTES:
            raise MachineLacksError(
                f"no space left in {folder.parent} to try perf",
                "free some, or set TMPDIR to a disk with more",
            )
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in lines if line.strip()), "it records nothing")
