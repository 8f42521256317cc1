"""A trace reduced where it was recorded: by the program that knows how, which is to our right."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

REDUCE = (sys.executable, "-m", "numaplan", "reduce")


def reduce_to_parts(trace: Path, job: Path) -> list[str]:
    """Make the parts of a trace's ranks in the job's folder and remove the trace; it stays where that fails.

    Returns what to say of it. The program has run: nothing here is an error of it.
    """
    command = [*REDUCE, str(trace), "-o", str(job), "--engine", "local:1"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        return [f"{trace} is kept, it could not be reduced: {error.strerror}"]
    said = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode:
        why = said[-1] if said else f"exit code {done.returncode}"
        return [f"{trace} is kept, it could not be reduced: {why}"]
    with suppress(OSError):
        trace.unlink()
    return [done.stdout.decode(errors="replace").strip()]
