"""Rows of the reproductions: verdicts, the JSON document, the page; the exact tables."""

import msgspec
import pytest

from benchmarks.papers import cmlb, exclusivity
from benchmarks.papers.experiments import Study
from benchmarks.papers.rows import Row, as_json, claim_row, effect_verdict, interval, ratio_row
from benchmarks.papers.show import page


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
