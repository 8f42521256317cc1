"""Signals in every phase of every command: `python -m tests.fuzz.signals [COUNT] [SEED] [NAME]`.

Each start gets up to three signals, at moments drawn at random: when it has shown so many new processes or
files, or after a share of the time that it takes by itself. Whatever comes, it must end, with a documented
code and one line of error at most, and leave nothing: no process, no file but whole outputs. All that do not
are told and kept. NAME: only commands whose words hold it.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, Popen

from tests.fuzz.family import MARK, Family, marked_processes
from tests.fuzz.left_over import problems
from tests.fuzz.starts import Start, environment, make_inputs, starts
from tests.support.commands import BIN

PATIENCE_S = 200.0  # for an end, on a machine however crowded
_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2)
_AGAIN, _STOPPED_S = 0.3, 0.05  # share of starts that get another signal; how long one is stopped at most


@dataclass(frozen=True)
class Usual:
    """What a start does without a signal: how long it takes, and how many events it shows."""

    seconds: float
    events: int


@dataclass
class Told:
    """What a start was sent, and how it ended."""

    start: Start
    folder: Path
    sent: list[tuple[str, str, float]] = field(default_factory=list)
    code: int = 0
    problems: list[str] = field(default_factory=list)


def try_one(start: Start, inputs: Path, base: Path, chance: random.Random, usual: Usual | None) -> Told:
    """Start a command in a folder of its own and send it signals; none without what is usual."""
    with _begun(start, inputs, base) as (told, family, mark):
        if usual is not None:
            _disturb(family, told, chance, usual)
        if not family.wait(PATIENCE_S):
            told.problems.append(f"it did not end: {family.states()}")
            family.end()
        told.code = family.process.returncode
        end = time.monotonic() + PATIENCE_S
        while (left := marked_processes(mark)) and time.monotonic() < end:
            time.sleep(0.01)
        told.problems += [f"process {pid} is left" for pid in left]
        told.problems += problems(told.folder, start, told.code, told.sent, family.pids)
        if usual is None:
            told.sent.append(("usual", str(family.events), family.seconds))
    return told


@contextmanager
def _begun(start: Start, inputs: Path, base: Path) -> Iterator[tuple[Told, Family, str]]:
    folder = Path(tempfile.mkdtemp(prefix="start-", dir=base))
    work, temporary = folder / "work", folder / "tmp"
    shutil.copytree(inputs, work)
    temporary.mkdir()
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as errors:
        process = Popen(
            [BIN / start.words[0], *start.words[1:]],
            cwd=work,
            env=environment(temporary, **{MARK: folder.name}),
            stdin=DEVNULL,
            stdout=out,
            stderr=errors,
            process_group=0,  # of our session: so it can be stopped as by Ctrl-Z
        )
    family = Family(process, (work, temporary), (folder / "stdout", folder / "stderr"))
    try:
        yield Told(start, folder), family, folder.name
    finally:
        family.end()


def _disturb(family: Family, told: Told, chance: random.Random, usual: Usual) -> None:
    """Send one signal or some, each at a moment of its own."""
    if chance.random() < 0.5:
        family.until(chance.randint(0, usual.events), chance.choice((0.0, chance.uniform(0, 0.02))))
    else:
        family.until(0, chance.uniform(0, 1.1 * usual.seconds))
    while True:
        _send(family, told, chance)
        if chance.random() >= _AGAIN or len(told.sent) > 2:
            return
        family.until(0, family.seconds + chance.choice((0.0, chance.uniform(0, 0.3 * usual.seconds))))


def _send(family: Family, told: Told, chance: random.Random) -> None:
    kind, whom = chance.random(), chance.choice(("command", "group"))

    def send(number: int, whom: str) -> None:
        if family.send(number, whom, chance.random()):
            told.sent.append((signal.Signals(number).name, whom, family.seconds))

    if kind < 0.65:
        send(chance.choice(_ASKING), whom)
    elif kind < 0.85:
        send(chance.choice((signal.SIGSTOP, signal.SIGTSTP)), whom)
        time.sleep(chance.uniform(0, _STOPPED_S))
        send(signal.SIGCONT, whom)
    else:
        family.look()
        send(signal.SIGKILL, "child")


def usual(known: Sequence[Start], inputs: Path, base: Path) -> dict[Start, Usual]:
    """What each does by itself; raises AssertionError when that is not as expected."""
    found = {}
    for start in known:
        told = try_one(start, inputs, base, random.Random(0), None)
        assert not told.problems, f"{start.name}: {'; '.join(told.problems)}: kept as {told.folder}"
        ((_, events, seconds),) = told.sent
        found[start] = Usual(seconds, int(events))
        shutil.rmtree(told.folder)
    return found


def run(count: int, seed: int, only: str, say: Callable[[str], None]) -> list[Told]:
    """Try `count` starts, as many at once as there are cpus; returns those that ended wrongly."""
    base = Path(tempfile.mkdtemp(prefix="numaplan-fuzz-"))
    inputs = base / "inputs"
    inputs.mkdir()
    make_inputs(inputs)
    known = [start for start in starts(inputs) if only in start.name]
    measured = usual(known, inputs, base)
    for start, facts in measured.items():
        say(f"{facts.seconds:5.1f} s, {facts.events:3} events: {start.name}")
    chance = random.Random(seed)
    drawn = chance.choices(known, [start.weight for start in known], k=count)
    seeds = [chance.randrange(1 << 32) for _ in drawn]
    codes: Counter[int] = Counter()
    wrong, done, lock = [], 0, threading.Lock()

    def one(start: Start, seed: int) -> None:
        nonlocal done
        told = try_one(start, inputs, base, random.Random(seed), measured[start])
        with lock:
            done += 1
            codes[told.code] += 1
            if told.problems:
                wrong.append(told)
                say(f"{start.name} after {told.sent} ended with {told.code}: {'; '.join(told.problems)}")
            else:
                shutil.rmtree(told.folder)
            if done % 100 == 0:
                say(f"{done} starts, {len(wrong)} wrong; exit codes: {dict(sorted(codes.items()))}")

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for future in [pool.submit(one, *pair) for pair in zip(drawn, seeds, strict=True)]:
            future.result()
    if not wrong:
        shutil.rmtree(base)
    return wrong


def main() -> int:
    words = sys.argv[1:]
    count = int(words[0]) if words else 1000
    seed = int(words[1]) if len(words) > 1 else random.SystemRandom().randrange(1 << 32)
    print(f"{count} starts from seed {seed}", file=sys.stderr)
    wrong = run(count, seed, words[2] if len(words) > 2 else "", lambda text: print(text, file=sys.stderr))
    for told in wrong:
        print(f"kept as {told.folder}", file=sys.stderr)
    print(f"{count} starts with signals: {len(wrong)} ended wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
