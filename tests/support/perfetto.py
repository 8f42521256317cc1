"""Perfetto's traces read back: trace_packet.proto, track_descriptor.proto, track_event.proto."""

import struct
from collections import defaultdict

from tests.support.protobuf import fields, part, parts


def read_perfetto(
    data: bytes,
) -> tuple[dict[int, str], list[tuple[int, int, str, int]], dict[tuple[str, str], list[float]]]:
    """Names of tracks, spans (from, to, name, track), values of counters by parent's and own name."""
    names, parents, counters = dict[int, str](), dict[int, int](), set[int]()
    spans: list[tuple[int, int, str, int]] = []
    begun: dict[int, list[tuple[int, str]]] = defaultdict(list)
    counted: dict[tuple[str, str], list[float]] = defaultdict(list)
    for packet in parts(fields(data), 1):
        assert part(packet, 10), "a packet names its sequence"
        for track in parts(packet, 60):
            uuid, parent = part(track, 1), part(track, 5)
            assert uuid and uuid not in names and (parent is None or parent in names)
            own = [part(thread, 5) for thread in parts(track, 4)] + [part(one, 6) for one in parts(track, 3)]
            names[uuid] = (part(track, 2) or own[0]).decode()
            parents[uuid] = parent or 0
            counters |= {uuid} if track[8] else set()
        for event in parts(packet, 11):
            track, kind, time = part(event, 11), part(event, 9), part(packet, 8)
            assert track in names and (kind == 4) == (track in counters)
            if kind == 1:
                begun[track].append((time, part(event, 23).decode()))
            elif kind == 2:
                start, name = begun[track].pop()
                assert start <= time
                spans.append((start, time, name, track))
            else:
                whole, real = part(event, 30), part(event, 44)
                value = struct.unpack("<d", real)[0] if whole is None else whole
                counted[names[parents[track]], names[track]].append(value)
    assert not any(begun.values()), "what begins ends"
    return names, spans, counted
