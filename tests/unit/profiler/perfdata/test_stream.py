"""A pipe decoded piece by piece gives what the whole file gives, wherever it is cut."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.profiler import PerfDataError, StreamDecoder, decode_perf
from tests.support.perfdata_builder import Builder, Event
from tests.support.properties import examples

BASIC = ["id", "tid", "time", "addr", "cpu", "period", "weight", "data_src"]


def _pipe() -> bytes:
    builder = Builder([Event(BASIC, ids=(1,), name="mem-loads"), Event(BASIC, ids=(2,), name="mem-stores")])
    builder.comm(5, 5, "app", 90, by_exec=True)
    for index in range(50):
        builder.sample(
            index % 2, {"id": 1 + index % 2, "pid": 5, "tid": index, "time": index, "addr": index * 64}
        )
        if index == 20:
            builder.lost(17, 21)
    return builder.pipe()


@examples(60)
@given(cuts=st.lists(st.integers(0, 6000), max_size=12), takes=st.booleans())
def test_pieces_add_up_to_the_file(tmp_path: Path, cuts: list[int], takes: bool) -> None:
    content = _pipe()
    (tmp_path / "whole").write_bytes(content)
    whole = decode_perf(tmp_path / "whole")
    decoder = StreamDecoder()
    pieces = []
    edges = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    for start, end in pairwise(edges):
        decoder.feed(content[start:end])
        if takes:
            pieces.append(decoder.take())
    pieces.append(decoder.take())
    for name in ("time", "tid", "addr", "event"):
        joined = np.concatenate([piece.samples[name] for piece in pieces])
        assert joined.tolist() == whole.samples[name].tolist(), name
    assert pieces[-1].events == whole.events
    assert sum(piece.lost for piece in pieces) == whole.lost == 17


def test_what_is_no_pipe_is_refused() -> None:
    decoder = StreamDecoder()
    decoder.feed(b"not")
    with pytest.raises(PerfDataError, match=r"no perf\.data"):
        decoder.feed(b" a recording at all")


def test_a_record_of_impossible_size_is_refused() -> None:
    decoder = StreamDecoder()
    content = _pipe()
    with pytest.raises(PerfDataError, match="impossible size"):
        decoder.feed(content + b"\x09\x00\x00\x00\x00\x00\x01\x00" * 4)
