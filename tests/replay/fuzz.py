"""Mutations of small recordings through the decoder: `python -m tests.replay.fuzz [COUNT] [SEED] [FILE…]`.

Every mutation must end in a decoded file or a PerfDataError, within the limits below; the first that does
not is kept.
"""

import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from numaplan.profiler.perfdata import PerfDataError, decode_perf
from tests.replay.builder import COMPRESSED2, SAMPLE_ORDER, Builder, Event

SECONDS = 10.0
MEMORY = 1 << 30
_WORDS = (0, 1, 7, 8, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)


def recordings() -> Iterator[bytes]:
    """Small files of each kind to start from."""
    plain = Event(("ip", "tid", "time", "addr", "cpu", "period"), name="page-faults", type=1, config=2)
    variable = Event(
        tuple(name for name, _bit in SAMPLE_ORDER if name not in ("id", "weight", "stream_id", "cgroup")),
        ids=(1, 2),
        read_format=12,
        regs_user=7,
        regs_intr=3,
    )
    other = Event(("identifier", "tid", "addr"), ids=(3,), name="other")
    for events in ([plain], [variable, other]):
        for order in "<>":
            for form in ("file", "pipe", "zstd", "zstd2 pipe"):
                yield _recording(Builder(events, order=order), form)


def _recording(builder: Builder, form: str) -> bytes:
    builder.comm(10, 10, "app", 5, by_exec=True)
    builder.mmap2(10, 0x400000, 0x1000, "/bin/app", 6, build_id="cd" * 20)
    for index in range(12):
        values = {
            "id": 1 + index % 3,
            "pid": 10,
            "tid": 10 + index,
            "time": index,
            "addr": index << 12,
            "read": 2,
        }
        values |= {
            "callchain": [1, 2],
            "raw": b"abc",
            "branch_stack": (1, 2, 3),
            "regs_user": 1,
            "regs_intr": 1,
        }
        builder.sample(int(index % 3 == 2) % len(builder.events), {**values, "stack_user": b"s" * 16})
        if index % 4 == 0:
            builder.fork(10, 11 + index, 10, index)
    builder.lost(3, 20)
    builder.end(10, 11, 10, 30)
    if "zstd" in form:
        builder.compress(cut=90, kind=COMPRESSED2 if "2" in form else 81)
    builder.record(68, b"")
    return builder.pipe() if "pipe" in form else builder.file()


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One to four changes: bytes, words, sizes, cuts, repeats."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed))
        kind = chance.randrange(6)
        if kind == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            width = chance.choice((2, 4, 8))
            value = chance.choice(_WORDS) & ((1 << 8 * width) - 1)
            at -= at % width
            changed[at : at + width] = value.to_bytes(width, "little")
        elif kind == 2:
            del changed[at + 1 :]
        elif kind == 3:
            length = chance.randint(1, 64)
            changed[at:at] = changed[at : at + length]
        elif kind == 4:
            del changed[at : at + chance.randint(1, 16)]
        else:
            changed[at] = chance.randrange(256)
        if not changed:
            return b""
    return bytes(changed)


def try_one(path: Path, most_memory: int) -> bool:
    """Decode a file; whether anything could be read. Raises AssertionError beyond the limits."""
    started = time.monotonic()
    try:
        decoded = decode_perf(path)
        assert len({len(column) for column in decoded.samples.values()}) == 1
        assert decoded.threads is not None
        readable = True
    except PerfDataError:
        readable = False
    assert time.monotonic() - started < SECONDS, "too slow"
    assert _peak() < most_memory, "too much memory"
    return readable


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(count: int, seed: int, originals: list[bytes]) -> int:
    """Try `count` mutations; returns how many could be read. The first failure is kept and raised."""
    chance = random.Random(seed)
    readable, most_memory = 0, _peak() + MEMORY
    with tempfile.TemporaryDirectory(prefix="numaplan-fuzz-") as folder:
        path = Path(folder) / "perf.data"
        for _ in range(count):
            path.write_bytes(mutate(chance.choice(originals), chance))
            try:
                readable += try_one(path, most_memory)
            except BaseException:
                kept = Path(tempfile.gettempdir()) / f"numaplan-fuzz-failure-{seed}.data"
                kept.write_bytes(path.read_bytes())
                print(f"kept as {kept}", file=sys.stderr)
                raise
    return readable


def main() -> int:
    count, seed = (int(word) for word in (*sys.argv[1:3], *("10000", "1")[len(sys.argv[1:3]) :]))
    originals = [*recordings(), *(Path(name).read_bytes() for name in sys.argv[3:])]
    readable = run(count, seed, originals)
    print(f"{count} mutations of {len(originals)} recordings: {readable} could be read, none broke a limit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
