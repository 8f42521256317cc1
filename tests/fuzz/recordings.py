"""Mutations of small recordings, decoded: `python -m tests.fuzz.recordings [COUNT] [SEED] [FILE…]`.

Every mutation must end in a decoded file or a PerfDataError, within the limits below; the first that does
not is kept. Without a seed, which is shown, each run draws others.
"""

import random
import resource
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from numaplan.profiler.perfdata.decode import decode_perf
from numaplan.profiler.perfdata.file.source import PerfDataError
from numaplan.profiler.perfdata.processes.identities import RunRecords, identity_of
from tests.support.perfdata_builder import AUXTRACE, COMPRESSED2, SAMPLE_ORDER, Builder, Event

SECONDS = 60.0  # of the processor; what takes longest by right takes four, on an idle machine
MEMORY = 1 << 30
_INNER, _BOMB = 0.2, 0.02  # shares of mutations of compressed content, and of those that blow up
_FLOOD, _MOST_REPEATED = 0.01, 30_000  # share of mutations that repeat a record, how often they do
_STEPS = (-(1 << 13), 0, 1, 1 << 12, 1 << 17)  # in a word of it: ids, pages, mappings that do not touch
_WORDS = (0, 1, 7, 8, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)


def recordings() -> Iterator[bytes]:
    """Small files of each kind to start from."""
    plain = Event(("ip", "tid", "time", "addr", "cpu", "period"), name="page-faults", type=1, config=2)
    variable = Event(
        tuple(name for name, _bit in SAMPLE_ORDER if name not in ("id", "weight", "stream_id")),
        ids=(1, 2),
        read_format=31,
        regs_user=7,
        regs_intr=3,
        branch_type=1 << 17 | 1 << 19,
        size=136,
    )
    other = Event(("identifier", "tid", "addr"), ids=(3,), name="other", size=136)
    elsewhere = Event(("ip", "tid", "time", "addr", "id"), ids=(3,), name="elsewhere", size=136)
    for events in ([plain], [variable, other], [variable, elsewhere]):
        for order in "<>":
            for form in ("file", "pipe", "zstd", "zstd2 pipe"):
                yield _recording(Builder(events, order=order), form)


def _features(builder: Builder) -> None:
    """Features within whose counts and lengths other counts stand."""
    text, pack = builder.text_feature, builder.pack
    builder.features[2] = (
        pack("IHHi", 67, 2, 108, -1) + b"\xab" * 20 + pack("I", 20) + b"/bin/app".ljust(72, b"\0")
    )
    builder.features[11] = pack("I", 2) + text("perf") + text("record")
    builder.features[14] = pack("IIQQ", 1, 0, 1 << 20, 1 << 19) + text("0-3")
    builder.features[16] = pack("II", 1, 4) + text("cpu")
    builder.features[21] = pack("2Q", 1, 99)
    builder.features[22] = pack("5Q", 1, 1 << 27, 1, 0, 64) + pack("Q", 255)
    builder.features[29] = pack("2I2Q", 1, 1, 10**18, 10**9)


def _side_records(builder: Builder) -> None:
    """Records that are skipped by their size, or that bring data behind it."""
    pack, tail = builder.pack, builder.tail({})
    for kind in (5, 6, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 69, 72, 73, 74, 75, 76, 77, 82, 84):
        builder.record(kind, pack("4Q", kind, 2, 1 << 40, 3) + tail)
    builder.record(79, pack("3Q", 1, 1, 0))
    builder.record(78, pack("2Q", 2, 1) + b"renamed\0")
    builder.records.append(builder.record(71, pack("5Q", 24, 0, 0, 0, 0)) + b"\x55" * 24)
    del builder.records[-2]


def _recording(builder: Builder, form: str) -> bytes:
    _features(builder)
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
    builder.mmap2(10, 0x7F0000000000, 0x100000, "//anon", 21, protection=0)
    builder.mmap2(10, 0x7F0000001000, 0xFF000, "//anon", 22, protection=3)
    builder.fork(20, 20, 10, 23)
    builder.comm(20, 20, "child", 24, by_exec=True)
    builder.lost(3, 20)
    builder.end(10, 11, 10, 30)
    if "zstd" not in form:
        _side_records(builder)
    if "zstd" in form:
        builder.compress(cut=90, kind=COMPRESSED2 if "2" in form else 81)
    builder.record(68, b"")
    return builder.pipe() if "pipe" in form else builder.file()


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One to four changes: bytes, words, sizes, cuts, repeats; now and then within the compressed data, or a
    flood of one record.
    """
    if chance.random() < _FLOOD and (changed := _flooded(data, chance)):
        return changed
    if chance.random() < _INNER and (changed := _mutated_inside(data, chance)):
        return changed
    return _mutated(data, chance)


def _flooded(data: bytes, chance: random.Random) -> bytes:
    """The file with one record many times over, a word of it counting; empty for what a pipe brings."""
    order = "<" if data[:8] == b"PERFILE2" else ">"
    if struct.unpack_from(order + "Q", data, 8) != (104,):
        return b""
    start, size = struct.unpack_from(order + "2Q", data, 40)
    records = [place for place in _records(data, start, start + size, order) if place[1] - place[0] >= 16]
    at, end = chance.choice(records)
    many = flood(data[at:end], chance.randrange(8, end - at - 7, 4), order, chance)
    head = data[:48] + struct.pack(order + "Q", size + len(many)) + data[56:72] + bytes(32)  # no features
    return head + data[104:end] + many + data[end : start + size]


def flood(record: bytes, place: int, order: str, chance: random.Random) -> bytes:
    """The record again and again, the word at `place` going up or down by the same step."""
    (value,) = struct.unpack_from(order + "Q", record, place)
    count, step = chance.choice((1000, _MOST_REPEATED)), chance.choice(_STEPS)
    words = (struct.pack(order + "Q", (value + step * number) % (1 << 64)) for number in range(count))
    return b"".join(record[:place] + word + record[place + 8 :] for word in words)


def _records(data: bytes, at: int, end: int, order: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each record of a sound file."""
    while at < end:
        kind, _misc, size = struct.unpack_from(order + "IHH", data, at)
        yield at, at + size
        at += size + (struct.unpack_from(order + "Q", data, at + 8)[0] if kind == AUXTRACE else 0)


def _mutated_inside(data: bytes, chance: random.Random) -> bytes:
    """The same recording with a mutation of what its zstd records hold; empty when it has none."""
    import zstandard

    at, packed = data.find(struct.pack("<I", zstandard.MAGIC_NUMBER)), b""
    first = at - 8
    if at < 8 or data[first : first + 4] != struct.pack("<I", 81):
        return b""
    end = first
    while data[end : end + 4] == struct.pack("<I", 81):
        (size,) = struct.unpack_from("<H", data, end + 6)
        packed += data[end + 8 : end + size]
        end += size
    inside = _mutated(zstandard.ZstdDecompressor().decompressobj().decompress(packed), chance)
    if chance.random() < _BOMB:
        inside = inside[:200] + bytes(chance.choice((1 << 20, 1 << 26)))
    again = zstandard.ZstdCompressor().compress(inside)
    records = [again[place : place + 60000] for place in range(0, len(again), 60000)]
    made = b"".join(struct.pack("<IHH", 81, 0, 8 + len(part)) + part for part in records)
    return data[:first] + made + data[end:]


def _mutated(data: bytes, chance: random.Random) -> bytes:
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
    """Decode a file and tell its identities; whether anything could be read.

    Raises AssertionError beyond the limits.
    """
    started = time.process_time()
    try:
        decoded = decode_perf(path)
        assert len({len(column) for column in decoded.samples.values()}) == 1
        run = RunRecords(decoded.threads, decoded.maps, decoded.execs, same_host=True)
        found, _warnings = identity_of(run, set(decoded.samples["pid"].tolist()))
        assert all(region.bytes > 0 for region in found.regions)
        readable = True
    except PerfDataError:
        readable = False
    assert time.process_time() - started < SECONDS, "too slow"
    assert peak() < most_memory, "too much memory"
    return readable


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(count: int, seed: int, originals: list[bytes]) -> int:
    """Try `count` mutations; returns how many could be read. The first failure is kept and raised."""
    chance = random.Random(seed)
    readable, most_memory = 0, peak() + MEMORY
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
    given = [int(word) for word in sys.argv[1:3]]
    count = given[0] if given else 10_000
    seed = given[1] if len(given) > 1 else random.SystemRandom().randrange(1 << 32)
    print(f"{count} mutations from seed {seed}", file=sys.stderr)
    originals = [*recordings(), *(Path(name).read_bytes() for name in sys.argv[3:])]
    readable = run(count, seed, originals)
    print(f"{count} mutations of {len(originals)} recordings: {readable} could be read, none broke a limit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
