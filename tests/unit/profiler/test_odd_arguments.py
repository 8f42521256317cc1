"""Arguments that are not UTF-8: the trace keeps the words, and files of them are valid."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from numaplan.common import as_text
from numaplan.profiler import Trace
from tests.support.properties import examples
from tests.support.traces import write_trace


@examples(100)
@given(st.lists(st.binary()))
def test_words_of_bytes_are_as_other_records_have_them(words: list[bytes]) -> None:
    assert as_text(map(os.fsdecode, words)) == [word.decode("utf-8", "replace") for word in words]


@examples(100)
@given(st.lists(st.text(st.characters())))
def test_any_text_can_then_be_written(words: list[str]) -> None:
    for word, shown in zip(words, as_text(words), strict=True):
        shown.encode()
        assert shown == word or any("\ud800" <= letter <= "\udfff" for letter in word)


@pytest.mark.parametrize(
    "text, argv",
    [
        (json.dumps(["./names", "1", "a\udcffb"]), ["./names", "1", "a\ufffdb"]),
        (json.dumps(["./a", "\U0001f600", "\ud800"]), ["./a", "\U0001f600", "\ufffd"]),
        ('["./a", 1]', []),
        ('{"a": "\\udcff"}', []),
        ("[" * 100_000, []),
        ('["', []),
    ],
)
def test_a_trace_of_an_earlier_version(tmp_path: Path, text: str, argv: list[str]) -> None:
    path = write_trace(
        tmp_path / "t.db", {"time_ns": []}, [(0, "p0", "0", 1, 1, "x", 0, -1)], meta={"argv": text}
    )
    with Trace.open(path) as trace:
        assert trace.argv == argv
