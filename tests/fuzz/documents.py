"""Hostile traces and plans for all that reads them: `python -m tests.fuzz.documents [COUNT] [SEED]`.

Each is given to one command, in a process of its own with limits of time and memory. It must end with a code
that is documented and one line of error, reach nothing but the file, send nothing to the terminal that could
command it, and leave no file but whole outputs. What does not is told and kept.
"""

import os
import random
import resource
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from numaplan import start
from tests.fuzz.hostile_json import hostile_json
from tests.fuzz.hostile_traces import make_hostile
from tests.fuzz.left_over import damage
from tests.fuzz.starts import PROGRAM, make_inputs

PROCESSOR_S, MEMORY, LARGEST = 200, 6 << 30, 1 << 30  # for what takes seconds and some hundred MiB by right
_SECRET = "what no reader of a trace may show"
_NEVER = (_SECRET, "Traceback", "internal error", "Exception ignored", "\x1b", "\x07", "\u202e")
TRACE, PLAN, MACHINE = "trace.db", "plan.json", "machine.json"


@dataclass(frozen=True)
class Reader:
    """A command, which of its documents is made hostile, what it may make, how it may end."""

    words: tuple[str, ...]
    reads: str
    makes: tuple[str, ...] = ()
    codes: frozenset[int] = frozenset({0, 2})


def readers() -> Iterator[Reader]:
    """All commands that read traces, plans or machines."""
    yield Reader(("nprof", "info", TRACE), TRACE)
    yield Reader(("nprof", "info", "--json", TRACE), TRACE)
    yield Reader(("nprof", "export", TRACE, "--to", "tables"), TRACE, ("tables",))
    for kind in ("csv", "perfetto", "speedscope", "pprof"):
        yield Reader(("nprof", "export", TRACE, "--to", "other", "--format", kind), TRACE, ("other",))
    yield Reader(("nmap", "analyze", TRACE), TRACE)
    yield Reader(("nmap", "analyze", TRACE, "--to", "m", "--format", "graphml"), TRACE, ("m",))
    yield Reader(("nmap", "report", TRACE, "--plan", PLAN, "-o", "r.html"), TRACE, ("r.html",))
    yield Reader(("nmap", "plan", TRACE, "--machine", "4x2", "-o", "n.json"), TRACE, ("n.json",))
    yield Reader(("nmap", "plan", TRACE, "-o", "n.json"), TRACE, ("n.json",))
    yield Reader(("nmap", "compare", TRACE, "--machine", "2x2"), TRACE)
    check = ("nmap", "check", TRACE, "--baseline", PLAN, "--junit", "j.xml")
    for read in (TRACE, PLAN):
        yield Reader(check, read, ("j.xml",), frozenset({0, 1, 2}))
    launch = ("nlaunch", "--plan", PLAN, "--remap")
    matched = ("--match", "--match-trace", TRACE, "--match-seconds", "0.01", "--", *PROGRAM)
    yield Reader((*launch, *matched), TRACE, codes=frozenset({0, 2, 3}))
    yield Reader(("nmap", "report", TRACE, "--plan", PLAN, "-o", "r.html"), PLAN, ("r.html",))
    yield Reader(("nmap", "show", PLAN), PLAN)
    yield Reader(("nmap", "diff", PLAN, "small.json"), PLAN)
    for form in ("omp", "gomp", "kmp", "rankfile", "slurm", "taskset", "numactl", "hwloc"):
        yield Reader(("nmap", "export", PLAN, "--format", form), PLAN)
    yield Reader((*launch, "--explain", "--", *PROGRAM), PLAN)
    for by in ("preload", "ptrace"):
        words = (*launch, "--by", by, "--report", "a.json", "--", *PROGRAM)
        yield Reader(words, PLAN, ("a.json",), frozenset({0, 2, 3}))
    yield Reader(("nmap", "machine", MACHINE), MACHINE)
    yield Reader(("nmap", "machine", MACHINE, "--json"), MACHINE)
    yield Reader(("nmap", "plan", TRACE, "--machine", MACHINE, "-o", "n.json"), MACHINE, ("n.json",))


def try_one(reader: Reader, inputs: Path, folder: Path, chance: random.Random) -> tuple[int, list[str]]:
    """Make the document hostile, and have it read; the exit code, and what is wrong with that."""
    work, temporary = folder / "work", folder / "tmp"
    shutil.copytree(inputs, work)
    temporary.mkdir()
    secret, read = folder / "secret", work / reader.reads
    secret.write_text(_SECRET)
    _apart(lambda: _make_hostile(read, secret, chance))
    before = set(work.iterdir())
    code, used = _apart(lambda: _become(reader, work, temporary, folder))
    wrong = [] if code in reader.codes else [f"exit code {code}, not of {sorted(reader.codes)}"]
    if used > LARGEST:
        wrong.append(f"it took {used >> 20} MiB")
    for stream in ("stdout", "stderr"):
        text = (folder / stream).read_text(errors="replace")
        wrong += [f"{stream} has {word!r}" for word in _NEVER if word in text]
    errors = [line for line in text.splitlines() if line.startswith(f"{reader.words[0]}: error: ")]
    if len(errors) != (code in (2, 3)):
        wrong.append(f"{len(errors)} lines of error")
    wrong += [f"{path.name} is left in TMPDIR" for path in temporary.iterdir()]
    for path in set(work.iterdir()) - before:
        if path.name not in reader.makes:
            wrong.append(f"{path.name} is left")
        elif reason := damage(path):
            wrong.append(f"{path.name} is not whole: {reason}")
    return code, wrong


def _apart(call: Callable[[], int]) -> tuple[int, int]:
    """Call in a child, within the limits and apart from our memory; its exit code, and the most it had."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
            code = call()
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), used.ru_maxrss << 10


def _make_hostile(read: Path, secret: Path, chance: random.Random) -> int:
    if read.name == TRACE:
        make_hostile(read, secret, chance)
    else:
        read.write_bytes(hostile_json(read.read_bytes(), chance))
    return 0


def _become(reader: Reader, work: Path, temporary: Path, folder: Path) -> int:
    """Run the command, with its streams in files."""
    os.chdir(work)
    for number, name in ((0, os.devnull), (1, folder / "stdout"), (2, folder / "stderr")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
    os.environ["TMPDIR"] = str(temporary)
    tempfile.tempdir = None
    sys.argv = ["numaplan-start", *reader.words]
    code = start.main()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def run(count: int, seed: int, only: str) -> int:
    """Try `count` documents; returns how many were read wrongly."""
    base = Path(tempfile.mkdtemp(prefix="numaplan-fuzz-"))
    inputs = base / "inputs"
    inputs.mkdir()
    make_inputs(inputs)
    known = [reader for reader in readers() if only in " ".join(reader.words)]
    wrong, codes = 0, Counter[int]()
    for number in range(count):
        chance = random.Random(f"{seed}-{number}")
        reader = known[number % len(known)]
        folder = base / str(number)
        folder.mkdir()
        code, problems = try_one(reader, inputs, folder, chance)
        codes[code] += 1
        if problems:
            wrong += 1
            told = f"{' '.join(reader.words)} with a hostile {reader.reads}"
            print(f"{told} ended with {code}: {'; '.join(problems)}: kept as {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder)
        if (number + 1) % 200 == 0:
            print(
                f"{number + 1} documents, {wrong} read wrongly; {dict(sorted(codes.items()))}",
                file=sys.stderr,
            )
    print(f"exit codes: {dict(sorted(codes.items()))}", file=sys.stderr)
    if not wrong:
        shutil.rmtree(base)
    return wrong


def main() -> int:
    words = sys.argv[1:]
    count = int(words[0]) if words else 2000
    seed = int(words[1]) if len(words) > 1 else random.SystemRandom().randrange(1 << 32)
    print(f"{count} documents from seed {seed}", file=sys.stderr)
    wrong = run(count, seed, words[2] if len(words) > 2 else "")
    print(f"{count} hostile documents: {wrong} were read wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
