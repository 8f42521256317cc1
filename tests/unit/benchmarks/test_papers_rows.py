"""Rows of the reproductions: verdicts, the JSON document, the page; the exact tables."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from benchmarks.papers import cmlb, exclusivity, kept, next_touch
from benchmarks.papers.experiments import Experiment
from benchmarks.papers.measured import FEWER, RESAMPLED, Measured, Study, spread_ratios
from benchmarks.papers.rows import (
    Row,
    as_json,
    claim_row,
    effect_verdict,
    interval,
    ratio_of_means,
    ratio_row,
    spread_row,
)
from benchmarks.papers.show import page, verdict
from benchmarks.simulator.run import Outcome


@pytest.mark.parametrize(
    ("paper", "value", "verdict"),
    [
        (1.0, 1.04, "size"), (1.0, 1.2, "no"), (0.7, 0.72, "size"), (0.7, 0.85, "direction"),
        (0.7, 1.1, "no"),
        (1.25, 1.1, "direction"), (1.25, 1.2, "size"), (0.7, 0.999, "no"),
    ],
)  # fmt: skip
def test_verdicts_compare_effects(paper: float, value: float, verdict: str) -> None:
    assert effect_verdict(paper, value) == verdict


def test_interval_is_students() -> None:
    mean, low, high = interval([1.0, 2.0, 3.0])
    assert (mean, round(low, 3), round(high, 3)) == (2.0, -0.484, 4.484)
    assert interval([5.0]) == (5.0, 5.0, 5.0)


def test_a_ratio_of_means_stands_bases_near_zero() -> None:
    assert ratio_of_means([1.0, 3.0], [2.0, 2.0])[0] == 1.0
    value, low, high = ratio_of_means([1.0, 1.0, 1.0, 2.0] * 5, [1.0, 0.001, 2.0, 2.0] * 5)
    assert value == pytest.approx(5.0 / 5.001)
    assert 0.7 < low < 1.0 < high < 1.5  # the mean of single ratios is 251


def test_rows_make_a_document_and_a_page() -> None:
    rows = [
        ratio_row("p", "1", "a <b>", 0.7, [0.7, 0.72], {"no": "why"}),
        claim_row("p", "2", "b", "better", [1.1, 1.2], 1.0, "because"),
    ]
    document = msgspec.json.decode(as_json(rows, 2))
    assert document["schema"] == "numaplan/papers/1"
    assert {"paper", "table", "row", "paper_value", "value", "verdict", "why"} <= document["rows"][0].keys()
    assert [row["verdict"] for row in document["rows"]] == ["size", "no"]
    assert "a &lt;b&gt;" in page(rows, 2)


def test_what_could_not_be_measured_is_no_disagreement() -> None:
    row = Row(paper="p", table="1", row="time", paper_value=72.0, value=None, verdict="no", why="emulated")
    shown = page([row, claim_row("p", "2", "b", "better", [1.1, 1.2], 1.0, "because")], 2)
    assert verdict(row) == "not measured"
    assert (
        "<td class=n>0<td class=n>0<td class=n>1<td class=n>1" in shown
    )  # size, direction, no, not measured
    assert "<td data-l=seeds: class=n>2" in shown


def test_within_the_interval_is_enough_for_ours() -> None:
    assert claim_row("ours", "", "", "", [0.9, 1.3], 1.0, within=True).verdict == "direction"
    assert claim_row("ours", "", "", "", [1.1, 1.11], 1.0, within=True).verdict == "no"


def exact_rows() -> list[Row]:
    return exclusivity.table_1() + exclusivity.table_3()


def test_exclusivitys_tables_are_exact() -> None:
    rows = exact_rows()
    assert len(rows) == 21
    assert {row.verdict for row in rows} == {"size"}


def test_cmlb_balances_where_the_others_do_not() -> None:
    rows = {row.row: row for row in cmlb.rows(Study(3))}
    for code in ("SP", "LU", "BT"):
        assert rows[f"{code}, CMLB: Load_std over EagerMap's"].value < 0.5  # type: ignore[operator]


def test_spreads_are_compared_with_their_interval() -> None:
    where = ("p", "1", "r")
    assert spread_row(where, "steadier", [0.5, 0.4, 0.6], 20).verdict == "direction"
    assert spread_row(where, "steadier", [1.5, 1.4, 1.6], 20).verdict == "no"
    unclear = spread_row(where, "steadier", [0.9, 0.7, 1.2], 20)
    assert "20 seeds do not tell" in unclear.why
    ratios = spread_ratios([measured()], "a", "b")
    assert ratios[0] == pytest.approx(0.1)
    assert len(ratios) == RESAMPLED + 1
    both = spread_ratios([measured(), measured(("b", "b"))], "a", "b")  # as many tasks that differ in nothing
    assert both[0] == pytest.approx((0.1 + 1.0) / 2.0)


def measured(like: tuple[str, str] = ("a", "b")) -> Measured:
    """Two tasks of about 10 s in four seeds, ten times as unsteady in `b` as in `a`."""
    steady, wild = np.full((4, 2), 10.0), np.array([[9.0, 10], [11, 10], [9, 10], [11, 10]])
    steady[:, 1] = [9.9, 10.1, 9.9, 10.1]
    tables = {"a": steady, "b": wild}
    return Measured(
        Experiment("e", "m", ()),
        {name: [outcome(times) for times in tables[table]] for name, table in zip("ab", like, strict=True)},
    )


def test_the_worst_and_the_best_task_are_followed_over_seeds() -> None:
    found = measured()
    assert found.worst_task("a", "b") == pytest.approx([10 / 9, 10 / 11, 10 / 9, 10 / 11])
    assert found.worst_task("a", "b", best=True) == pytest.approx([0.99, 1.01, 0.99, 1.01])


def test_fewer_seeds_where_no_headline_hangs_on_it() -> None:
    assert (Study(20).fewer().seeds, Study(3).fewer().seeds) == (FEWER, 3)


def outcome(ends: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Outcome:
    return Outcome(ends, np.zeros(len(ends)), np.nan_to_num(ends), migrations={3: [1, 2]}, remote=0.25)


def test_outcomes_are_kept_by_what_was_asked(tmp_path: Path) -> None:
    one, two = ("one", "dino", 1000), ("one", "dino", 1001)
    assert kept.load(tmp_path, one) is None
    kept.save(tmp_path, one, outcome(np.array([3.5, np.nan])))
    found = kept.load(tmp_path, one)
    assert found is not None
    assert kept.load(tmp_path, two) is None
    assert (found.ends[0], found.migrations, found.remote) == (3.5, {3: [1, 2]}, 0.25)
    assert np.isnan(found.ends[1])
    for path in tmp_path.iterdir():
        path.write_text("{")  # broken off by a full disk, say
    assert kept.load(tmp_path, one) is None


def test_next_touchs_times_count_on_real_memory_alone() -> None:
    each = {"mark": 40.0, "touch_by_page": 5200.0, "touch_by_granule": 650.0, "move_pages": 6596.0}
    measured = {"where": "lab 4x2", "ns_a_page": {"1": {**each, "move_pages": 78_000.0}, "64": each}}
    lab = next_touch.made(measured)
    assert [row.verdict for row in lab[:5]] == ["size", "direction", "size", "direction", "size"]
    assert [(row.verdict, row.value) for row in lab[5:]] == [("no", None)] * 3
    real = next_touch.made({**measured, "where": "here"})
    assert [row.verdict for row in real[5:]] == ["size"] * 3
    bases = {
        base: next_touch.made({**measured, "ns_a_page": {"1": {**each, "move_pages": base}, "64": each}})[4]
        for base in (1e3, 1e6)
    }
    assert "dear between" in bases[1e6].why and "dear beside" in bases[1e3].why
    slow = {**each, "touch_by_page": 2.6e5}
    far = next_touch.made({**measured, "ns_a_page": {"1": slow, "64": slow}})
    assert far[2].verdict == "no"
    assert "signal" in far[2].why
