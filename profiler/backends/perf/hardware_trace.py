"""Hardware traces (ARM SPE, Intel PT): packets in a perf.data file that only perf can turn into samples."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

from numaplan.common import MachineLacksError, NumaplanError

from ...perfdata.accesses.blocks import Accesses, survey
from ...perfdata.file.script import transcribe
from ..base import Progress
from .command import find_perf

# M: memory accesses (SPE); o: samples that PEBS put into the trace (Intel PT). Each is ignored by the other.
_WANTED = "--itrace=Mo"
_BYTES_A_SECOND = 1 << 20
_LEAST_SECONDS = 8


def synthesise(recording: Path, output: Path) -> Path:
    """Have perf write `output`, a recording with an ordinary sample for each memory access of the trace.

    Raises MachineLacksError where perf is missing or cannot decode it.
    """
    hint = f"decode it where it was recorded: perf inject {_WANTED} -i {recording.name} -o decoded.data"
    seconds = _patience(recording)
    command = [find_perf(), "inject", "-f", _WANTED, "-i", str(recording), "-o", str(output)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineLacksError(f"perf does not decode the hardware trace: {error}", hint) from error
    if done.returncode or not output.exists():
        lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines()]
        words = next((line for line in reversed(lines) if line), f"it ended with {done.returncode}")
        raise MachineLacksError(f"perf cannot decode the hardware trace: {words[:200]}", hint)
    return output


def samples_of(path: Path, found: Accesses, folder: Path, number: int, progress: Progress) -> Accesses:
    """The accesses of a hardware trace: by `perf inject`, or where that gives none by `perf script`.

    found: what the file itself says; folder, number: where to put intermediate files, and a name for them.
    Raises MachineLacksError where perf is missing or cannot decode it.
    """
    progress("decoding the hardware trace with perf inject", -1)
    try:
        made = survey(synthesise(path, folder / f"synthesised-{number}.data"))
        if made.count:
            return made
    except NumaplanError:
        find_perf()  # without perf there is no other way
    output = folder / f"script-{number}.data"

    def tell(count: int) -> None:
        progress(f"decoding the hardware trace with perf script: {count:,} samples", -1)

    tell(0)
    made = survey(transcribe(find_perf(), _WANTED, path, output, _patience(path), tell))
    facts = found.facts
    known = {(span.pid, span.tid) for span in facts.recorded_threads}
    more = (span for span in made.facts.recorded_threads if (span.pid, span.tid) not in known)
    combined = replace(
        facts,
        events=made.facts.events,
        header={**facts.header, "attrs": made.facts.header["attrs"]},
        recorded_threads=(*facts.recorded_threads, *more),
    )
    return replace(made, facts=combined)


def _patience(recording: Path) -> float:
    """Seconds that perf may take for a file (or directory) of this size."""
    files = recording.iterdir() if recording.is_dir() else [recording]
    return _LEAST_SECONDS + sum(file.stat().st_size for file in files) / _BYTES_A_SECOND
