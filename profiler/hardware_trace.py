"""Hardware traces (ARM SPE, Intel PT): packets in a perf.data file that only perf can turn into samples."""

import os
import subprocess
from pathlib import Path

from numaplan.common import MachineLacksError
from numaplan.profiler.backends.perf_command import find_perf

# M: memory accesses (SPE); o: samples that PEBS put into the trace (Intel PT). Each is ignored by the other.
_WANTED = "--itrace=Mo"
_BYTES_A_SECOND = 1 << 20
_LEAST_SECONDS = 8


def synthesise(recording: Path, output: Path) -> Path:
    """Have perf write `output`, a recording with an ordinary sample for each memory access of the trace.

    Raises MachineLacksError where perf is missing or cannot decode it.
    """
    mend = f"decode it where it was recorded: perf inject {_WANTED} -i {recording.name} -o decoded.data"
    seconds = _LEAST_SECONDS + recording.stat().st_size / _BYTES_A_SECOND
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
        raise MachineLacksError(f"perf does not decode the hardware trace: {error}", mend) from error
    if done.returncode or not output.exists():
        lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines()]
        words = next((line for line in reversed(lines) if line), f"it ended with {done.returncode}")
        raise MachineLacksError(f"perf cannot decode the hardware trace: {words[:200]}", mend)
    return output
