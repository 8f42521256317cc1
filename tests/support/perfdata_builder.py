"""Writes perf.data files byte by byte, as the kernel ABI and perf say, for tests and benchmarks.

It knows nothing of the decoder: field orders and bit numbers are written down here a second time.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

# (name, bit of sample_type) in the order of the fields in a sample.
SAMPLE_ORDER = (
    ("identifier", 16),
    ("ip", 0),
    ("tid", 1),
    ("time", 2),
    ("addr", 3),
    ("id", 6),
    ("stream_id", 9),
    ("cpu", 7),
    ("period", 8),
    ("read", 4),
    ("callchain", 5),
    ("raw", 10),
    ("branch_stack", 11),
    ("regs_user", 12),
    ("stack_user", 13),
    ("weight", 14),
    ("weight_struct", 24),
    ("data_src", 15),
    ("transaction", 17),
    ("regs_intr", 18),
    ("phys_addr", 19),
    ("cgroup", 21),
    ("data_page_size", 22),
    ("code_page_size", 23),
    ("aux", 20),
)
BIT = dict(SAMPLE_ORDER)
_TAIL = ("tid", "time", "id", "stream_id", "cpu", "identifier")
SAMPLE_ID_ALL = 18
HOSTNAME, VERSION, EVENT_DESC = 3, 5, 12
COMPRESSED, COMPRESSED2, ATTR, FEATURE, AUXTRACE = 81, 83, 64, 80, 71


@dataclass
class Event:
    """One event: what its attr says, its ids and its name."""

    fields: Sequence[str]
    ids: Sequence[int] = ()
    name: str = "mem-loads"
    type: int = 4
    config: int = 0x1CD
    size: int = 128
    read_format: int = 0
    flag_bits: Sequence[int] = (SAMPLE_ID_ALL,)
    regs_user: int = 0
    regs_intr: int = 0
    branch_type: int = 0

    @property
    def sample_type(self) -> int:
        return sum(1 << BIT[name] for name in self.fields)


@dataclass
class Builder:
    """Collects records and writes them as a file or as what a pipe carries."""

    events: Sequence[Event]
    order: str = "<"
    records: list[bytes] = field(default_factory=list)
    features: dict[int, bytes] = field(default_factory=dict)

    def pack(self, form: str, *values: object) -> bytes:
        return struct.pack(self.order + form, *values)

    def record(self, kind: int, body: bytes, misc: int = 0) -> bytes:
        """Append (and return) one record; its size is what the body needs."""
        data = self.pack("IHH", kind, misc, 8 + len(body)) + body
        self.records.append(data)
        return data

    def sample(self, event: int, values: Mapping[str, object]) -> bytes:
        """Append a sample with the values its event asks for (missing ones are 0 or empty)."""
        one = self.events[event]
        parts = [self._field(one, name, values) for name, _bit in SAMPLE_ORDER if name in one.fields]
        return self.record(9, b"".join(parts))

    def _field(self, event: Event, name: str, values: Mapping[str, object]) -> bytes:
        value = values.get(name, 0)
        if name == "tid":
            return self.pack("2i", values.get("pid", 0), value)
        if name == "cpu":
            return self.pack("2I", value, 0)
        if name in ("identifier", "id"):
            return self.pack("Q", values.get("id", 0))
        if name == "callchain":
            chain = values.get("callchain") or ()
            return self.pack(f"{len(chain) + 1}Q", len(chain), *chain)
        if name == "raw":
            data = bytes(values.get("raw") or b"")
            data += b"\0" * (-(len(data) + 4) % 8)
            return self.pack("I", len(data)) + data
        if name == "branch_stack":
            branches = list(values.get("branch_stack") or ())
            index = self.pack("Q", 7) if event.branch_type >> 17 & 1 else b""
            counters = self.pack("Q", 5) * (len(branches) // 3) if event.branch_type >> 19 & 1 else b""
            stack = self.pack(f"{len(branches)}Q", *branches) + counters
            return self.pack("Q", len(branches) // 3) + index + stack
        if name in ("regs_user", "regs_intr"):
            count = getattr(event, name).bit_count()
            wanted = value != 0
            return self.pack("Q", 1) + self.pack(f"{count}Q", *range(count)) if wanted else self.pack("Q", 0)
        if name == "aux":
            data = bytes(values.get("aux") or b"")
            return self.pack("Q", len(data)) + data
        if name == "stack_user":
            stack = bytes(values.get("stack_user") or b"")
            return self.pack("Q", len(stack)) + (stack + self.pack("Q", len(stack)) if stack else b"")
        if name == "read":
            return self._read(event, value)
        if name == "weight_struct":
            low, rest = int(values.get("weight", 0)), 0x00070003 << 32
            return self.pack("Q", low | rest)
        return self.pack("Q", value)

    def _read(self, event: Event, count: object) -> bytes:
        """READ values: bits of read_format are 1 enabled, 2 running, 4 id, 8 group, 16 lost."""
        form = event.read_format
        times = (form & 1) + (form >> 1 & 1)
        each = 1 + (form >> 2 & 1) + (form >> 4 & 1)
        if form & 8:
            members = int(count)
            return self.pack(f"{1 + times + each * members}Q", members, *range(times + each * members))
        return self.pack(f"{times + each}Q", *range(times + each))

    def tail(self, values: Mapping[str, object]) -> bytes:
        """What sample_id_all puts behind a record that is no sample, by the first event."""
        event = self.events[0]
        if SAMPLE_ID_ALL not in event.flag_bits:
            return b""
        return b"".join(self._field(event, name, values) for name in _TAIL if name in event.fields)

    def comm(self, pid: int, tid: int, name: str, time: int, by_exec: bool = False) -> None:
        text = name.encode() + b"\0" * (8 - len(name.encode()) % 8)
        tail = self.tail({"pid": pid, "tid": tid, "time": time})
        self.record(3, self.pack("2i", pid, tid) + text + tail, misc=1 << 13 if by_exec else 0)

    def fork(self, pid: int, tid: int, parent: int, time: int, kind: int = 7, parent_tid: int = 0) -> None:
        body = self.pack("4iQ", pid, parent, tid, parent_tid or parent, time)
        self.record(kind, body + self.tail({"pid": pid, "tid": tid, "time": time}))

    def mmap(self, pid: int, addr: int, length: int, name: str, time: int, data: bool = False) -> None:
        text = name.encode() + b"\0" * (8 - len(name.encode()) % 8)
        body = self.pack("2i3Q", pid, pid, addr, length, 0) + text
        self.record(1, body + self.tail({"pid": pid, "time": time}), misc=data << 13)

    def end(self, pid: int, tid: int, parent: int, time: int) -> None:
        self.fork(pid, tid, parent, time, kind=4)

    def mmap2(
        self,
        pid: int,
        addr: int,
        length: int,
        name: str,
        time: int,
        build_id: str = "",
        *,
        tid: int = 0,
        offset: int = 0,
        protection: int = 5,
    ) -> None:
        text = name.encode() + b"\0" * (8 - len(name.encode()) % 8)
        file = bytes.fromhex(build_id)
        inode = (
            self.pack("B3x", len(file)) + file.ljust(20, b"\0") if file else self.pack("2I2Q", 8, 1, 42, 0)
        )
        body = self.pack("2i3Q", pid, tid or pid, addr, length, offset) + inode
        body += self.pack("2I", protection, 2) + text
        self.record(10, body + self.tail({"pid": pid, "time": time}), misc=1 << 14 if file else 0)

    def lost(self, events: int, time: int) -> None:
        self.record(2, self.pack("2Q", 1, events) + self.tail({"time": time}))

    def compress(self, cut: int = 500, kind: int = COMPRESSED) -> None:
        """Put all records so far into zstd records of at most `cut` bytes of payload each."""
        import zstandard

        data = zstandard.ZstdCompressor().compress(b"".join(self.records))
        self.records = []
        for at in range(0, len(data), cut):
            part = data[at : at + cut]
            if kind == COMPRESSED2:
                part = self.pack("Q", len(part)) + part + b"\0" * (-len(part) % 8)
            self.record(kind, part)

    def text_feature(self, text: str) -> bytes:
        data = text.encode() + b"\0" * (64 - len(text) % 64)
        return self.pack("I", len(data)) + data

    def event_desc(self) -> bytes:
        size = self.events[0].size
        parts = [self.pack("2I", len(self.events), size)]
        for event in self.events:
            ids = self.pack(f"{len(event.ids)}Q", *event.ids)
            parts += [self.attr(event), self.pack("I", len(event.ids)), self.text_feature(event.name), ids]
        return b"".join(parts)

    def attr(self, event: Event) -> bytes:
        flags = sum(1 << (bit if self.order == "<" else 63 - bit) for bit in event.flag_bits)
        head = self.pack("2I", event.type, event.size)
        head += self.pack("5Q", event.config, 1000, event.sample_type, event.read_format, flags)
        head += self.pack("2I2Q", 0, 0, 0, 0)
        head += self.pack("2Q2IQ", event.branch_type, event.regs_user, 0, 0, event.regs_intr)
        return head.ljust(max(event.size, len(head)), b"\0")[: event.size]

    def file(self, size_in_header: int | None = None) -> bytes:
        """The bytes of a perf.data file; size_in_header: what it says of its data (0 until perf ends)."""
        entry = self.events[0].size + 16
        ids_at = 104
        id_lists = [self.pack(f"{len(event.ids)}Q", *event.ids) for event in self.events]
        attrs_at = ids_at + sum(map(len, id_lists))
        attrs = b""
        for event, ids in zip(self.events, id_lists, strict=True):
            attrs += self.attr(event) + self.pack("2Q", ids_at, len(ids))
            ids_at += len(ids)
        data = b"".join(self.records)
        data_at = attrs_at + len(attrs)
        features = {EVENT_DESC: self.event_desc(), **self.features}
        bits = sum(1 << number for number in features)
        magic = b"PERFILE2" if self.order == "<" else b"2ELIFREP"
        told = len(data) if size_in_header is None else size_in_header
        head = magic + self.pack("9Q", 104, entry, attrs_at, len(attrs), data_at, told, 0, 0, bits)
        head = head.ljust(104, b"\0")
        return (
            head + b"".join(id_lists) + attrs + data + self._feature_sections(features, data_at + len(data))
        )

    def _feature_sections(self, features: Mapping[int, bytes], at: int) -> bytes:
        at += 16 * len(features)
        table, bodies = b"", b""
        for number in sorted(features):
            table += self.pack("2Q", at + len(bodies), len(features[number]))
            bodies += features[number]
        return table + bodies

    def pipe(self) -> bytes:
        """The bytes that `perf record -o -` writes."""
        magic = b"PERFILE2" if self.order == "<" else b"2ELIFREP"
        parts = [magic + self.pack("Q", 16)]
        for event in self.events:
            ids = self.pack(f"{len(event.ids)}Q", *event.ids)
            body = self.attr(event) + ids
            parts.append(self.pack("IHH", ATTR, 0, 8 + len(body)) + body)
        for number, content in {EVENT_DESC: self.event_desc(), **self.features}.items():
            body = self.pack("Q", number) + content
            if len(body) < 1 << 15:  # longer ones have no place in a record
                parts.append(self.pack("IHH", FEATURE, 0, 8 + len(body)) + body)
        return b"".join(parts + self.records)


def many_samples(count: int, seed: int = 0) -> tuple[Event, NDArray[np.void]]:
    """An event and `count` samples of it as the records of a file, for measuring; little-endian."""
    event = Event(
        ("ip", "tid", "time", "addr", "id", "cpu", "period", "weight", "data_src"), ids=range(100, 108)
    )
    words = [("type", "<u4"), ("misc", "<u2"), ("size", "<u2"), ("ip", "<u8"), ("pid", "<i4"), ("tid", "<i4")]
    words += [
        ("time", "<u8"),
        ("addr", "<u8"),
        ("id", "<u8"),
        ("cpu", "<u4"),
        ("res", "<u4"),
        ("period", "<u8"),
    ]
    words += [("weight", "<u8"), ("data_src", "<u8")]
    random = np.random.default_rng(seed)
    records = np.zeros(count, dtype=words)
    records["type"], records["misc"], records["size"] = 9, 2, records.dtype.itemsize
    records["ip"] = 0x400000 + random.integers(0, 1 << 16, count)
    records["pid"], records["tid"] = 4000, 4000 + random.integers(0, 8, count)
    records["time"] = 10**12 + np.cumsum(random.integers(50, 5000, count))
    records["addr"] = 0x7F0000000000 + 8 * random.integers(0, 1 << 24, count)
    records["cpu"] = random.integers(0, 8, count)
    records["id"] = 100 + records["cpu"]
    records["period"], records["weight"] = 1000, random.integers(4, 900, count)
    records["data_src"] = 0x68100142
    return event, records
