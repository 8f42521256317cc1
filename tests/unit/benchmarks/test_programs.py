"""Programs of the distribution: what is judged of their counts, and the tables made of them."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchmarks.programs.measuring import Place, digest_of
from benchmarks.programs.page import write_page
from benchmarks.programs.program import Program, ProgramLeftOutError, make_ready
from benchmarks.programs.programs import PROGRAMS
from benchmarks.programs.rows import Counted, Predicted, Row, read_row
from benchmarks.programs.tables import tables
from benchmarks.programs.verdicts import gain, ordered_pairs, over_best, share_error, verdicts

COUNTED = Counted(0.5, 0.4, 1000, 1.5, 1.2, 100e6, 2.0)
PLAN = {"threads": [], "memory": [], "predicted": {"local_share": 0.8, "cost": 90e6, "costs": {"alone": 1e8}}}


def _row(predicted: Predicted | None = None, **costs: float) -> Row:
    counted = {name: msgspec.structs.replace(COUNTED, cost=cost) for name, cost in costs.items()}
    return Row("made", "static", True, "2x2", counted, predicted)


def test_a_plan_is_measured_against_the_best_of_all_baselines() -> None:
    assert over_best(_row(default=100, compact=80, interleave=120, plan=88)) == pytest.approx(1.1)
    assert over_best(_row(default=100, compact=80, plan=88)) is None
    assert over_best(_row(default=100, compact=80, interleave=120)) is None


def test_gain_is_against_the_default() -> None:
    assert gain(_row(default=100, plan=70)) == pytest.approx(0.3)
    assert gain(_row(default=0, plan=0)) is None


def test_error_of_the_share_is_in_points() -> None:
    assert share_error(_row(Predicted(local=0.54), plan=1)) == pytest.approx(4)
    assert share_error(_row(Predicted(), plan=1)) is None


def test_pairs_that_differ_little_have_no_order() -> None:
    predicted = Predicted(costs={"default": 50, "compact": 60, "plan": 40})
    row = _row(predicted, default=100, compact=90, interleave=300, plan=91)
    assert ordered_pairs(row) == [("compact", "default", False), ("plan", "default", True)]


def test_verdicts_name_the_rows_against_them() -> None:
    good = _row(Predicted(local=0.5), default=100, compact=90, interleave=120, plan=70)
    bad = replace(
        _row(Predicted(local=0.57), default=100, compact=90, interleave=120, plan=95), program="bad"
    )
    worse, gains, shares, order = verdicts([good, bad])
    assert (worse.met, worse.found, worse.against) == (False, "1 of 2", ("bad on 2x2 +5.6 %",))
    assert (gains.met, gains.found) == (True, "17.5 % over 2")
    assert (shares.met, shares.against) == (False, ("bad on 2x2 +7.0",))
    assert order.met is None


def test_nothing_counted_meets_nothing() -> None:
    assert [verdict.met for verdict in verdicts([_row()])] == [None] * 4


def _kept(folder: Path, made_for: dict[str, object], *configs: str, **failed: str) -> Row:
    program = PROGRAMS[0]
    place = Place(folder / program.name, "2x2")
    place.folder.mkdir()
    place.plan.write_text(json.dumps(PLAN))
    fields = ("local_share", "memory_local_share", "memory_imbalance", "lines_between_nodes", "busiest_cpu")
    run = dict.fromkeys((*fields, "cost", "seconds"), 0.5)
    counts = {"plan": digest_of(made_for), "configs": {name: [run] for name in configs}, "failed": failed}
    place.counts.write_text(json.dumps(counts))
    return read_row(program, folder, "2x2")


def test_row_has_what_was_counted_and_predicted(tmp_path: Path) -> None:
    row = _kept(tmp_path, PLAN, "default", "plan", compact="exit code 2: no")
    assert set(row.counted) == {"default", "plan"}
    assert row.failed == {"compact": "exit code 2: no"}
    assert row.predicted == Predicted(local=0.8, costs={"default": 1e8, "plan": 90e6})


def test_counts_of_another_plan_are_not_this_plans(tmp_path: Path) -> None:
    other = {**PLAN, "threads": [{"path": "0"}]}
    assert set(_kept(tmp_path, other, "default", "plan").counted) == {"default"}


def test_plans_that_differ_in_predictions_place_alike() -> None:
    assert digest_of(PLAN) == digest_of({**PLAN, "predicted": {}})


def test_tables_and_page_show_bad_rows(tmp_path: Path) -> None:
    row = _row(Predicted(local=0.5, costs={"plan": 2e6}, alone=True), default=1e6, plan=3e6)
    row = replace(row, failed={"compact": "exit code 2"})
    costs, shares, evenness = tables([row])
    assert costs.lines == (("made", "static", "1.0", "3.0 (2.0 alone)", "–"),)
    assert shares.lines == (("made", "50 40", "50 40", "50 –"),)
    assert evenness.lines == (("made", "1 1.50 1.20", "1 1.50 1.20"),)
    write_page(tmp_path / "page.md", [row])
    assert "made on 2x2, compact: exit code 2" in (tmp_path / "page.md").read_text()


def test_a_program_that_is_not_here_says_what_to_install(tmp_path: Path) -> None:
    program = Program("none", "static", "no-such-program", ("no-such-program",), "such")
    with pytest.raises(ProgramLeftOutError, match="no-such-program not found") as caught:
        make_ready(program, tmp_path, 4)
    assert caught.value.hint == "apt-get install such"


def test_words_are_filled_in(tmp_path: Path) -> None:
    program = Program("true", "static", "true {threads}", ("true",), "", environment={"N": "{threads}"})
    ready = make_ready(program, tmp_path, 4)
    assert ready.argv[1:] == ["4"]
    assert ready.environment["N"] == "4"
