"""What to write for a falsely shared line, by the names of the source; several traces' advice as one list."""

import pytest

from numaplan.analyzer import Advice, Advised, Change, FalseSharing
from numaplan.analyzer.report.advice import gain_words
from numaplan.mapper.advice.merged import merged
from numaplan.mapper.advice.own_lines import called, cure
from numaplan.mapper.advice.pools import affinity

SUMS, HITS = ["sums[0]", "sums[1]"], ["cells[3].hits", "cells[4].hits"]


def line(fields: list[str], threads: int = 2) -> FalseSharing:
    return FalseSharing(0, 0, list(range(threads)), 100, 50, fields=fields)


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        (SUMS, "a.c", "make `sums` an array of structs with a line each: _Alignas(64) before"),
        (HITS, "a.cpp", "alignas(64) before the first member of the struct that `cells`"),
        (HITS, "m.rs", "#[repr(align(64))] before the struct that `cells` has"),
        (["head", "tail"], "a.c", "_Alignas(64) before `tail`, and before what follows"),
        (["head", "tail"], "m.rs", "put `tail` into a struct with #[repr(align(64))]"),
        ([*SUMS, "total"], "f.f90", "pad each item of `sums` to 64 bytes; 64 bytes of padding before"),
        (["one"], "a.c", "start each thread's part on a line of its own: _Alignas(64), or"),
        ([], "", "start each thread's part on a line of its own: _Alignas(64) in C, alignas(64) in C++"),
    ],
)  # fmt: skip
def test_each_gets_a_line_of_its_own(fields: list[str], path: str, words: str) -> None:
    assert cure([line(fields, threads=8)], path).startswith(words)


def test_the_lines_are_called_by_what_they_are_of() -> None:
    assert called([line([*HITS, "state.head"])]) == "`cells`, `state`"
    assert called([line(["a", "b"]), line(["b", "c", "d"])]) == "`a`, `b`, `c` and 1 more"
    assert called([line([])]) == ""


def test_where_threads_have_several_items_in_a_line_their_parts_begin_on_one() -> None:
    found = cure([line(["grid[7]", "grid[8]", "grid[9]"], threads=2), line(HITS)], "a.c")
    assert found.startswith("begin each thread's part of `grid` at a multiple of 64 bytes")
    assert "the struct that `cells` has" in found


@pytest.mark.parametrize(
    ("region", "words"),
    [
        ("libtbb.so.12:.bss", "a tbb::task_arena for each node"),
        ("libgomp.so.1:.data", "schedule(static)"),
        ("libomp.so.5:.bss", "the clause affinity"),
        ("libiomp5.so:.bss", "the clause affinity"),
        ("libtbbmalloc.so.2:.bss", "a team of threads and a queue for each node"),
    ],
)
def test_tasks_get_an_affinity_by_the_library_that_runs_them(region: str, words: str) -> None:
    assert affinity({"app:.data", region}).startswith(words)


def one(kind: str, action: str, gain: float | None, before: float = 0.2) -> Advice:
    ns = None if gain is None else gain * 1000
    share = Change(before, 1.0)
    return Advice(
        kind=kind, action=action, evidence="e", change="c", gain_ns=ns, gain=gain, local_share=share
    )


def test_advice_of_several_traces_is_a_list_with_the_mean_of_their_gains() -> None:
    mine = one("plan", "bound, 1 region", 0.4), one("pad", "2 threads use of x", 0.3), one("pool", "p", None)
    pads = one("pad", "3 threads use of x", 0.5, 0.4), one("pad", "3 threads use of y", 0.2)
    first, other = Advised(mine), Advised([*pads, one("plan", "bound", 0.1)])
    found = merged([first, other])
    told = [(advice.kind, advice.action, advice.gain, advice.gain_ns) for advice in found.advice]
    assert told == [
        ("pad", "3 threads use of x", 0.4, 400),
        ("plan", "bound, 1 region", 0.25, 250),
        ("pad", "3 threads use of y", 0.1, 100),
        ("pool", "p", None, None),
    ]
    assert found.advice[0].local_share == Change(0.3, 1.0)
    assert [advice.evidence for advice in found.advice[:3:2]] == [
        "e (so in all 2 traces)",
        "e (so in 1 of 2 traces)",
    ]
    assert gain_words(found.advice[-1]).startswith("gain unknown, 20%")


def test_a_reason_against_all_is_told_where_no_trace_speaks_for_anything() -> None:
    nothing, something = Advised((), "why"), Advised([one("plan", "a", 0.1)])
    assert merged([nothing, nothing]) == Advised((), "why")
    assert merged([nothing, something]).reason == "" and merged([nothing]) is nothing
