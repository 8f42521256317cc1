"""The picture of what placements are expected to cost."""

from typing import Any

from numaplan.analyzer.report.figures.cost import MOST, PARTS, cost_figures

COSTS = {"alone": 9e6, "best": 4e6, "scatter": 8e6, "compact": 5e6}


def predicted(costs: dict[str, float], *, parts: bool = True) -> dict[str, Any]:
    split = {name: {"memory_ns": cost / 4, "lines_ns": 3 * cost / 4} for name, cost in costs.items()}
    return {"costs": costs, "candidate_parts": split if parts else {}}


def test_the_plan_stands_first_then_what_it_saves_against_then_the_others() -> None:
    (figure,) = cost_figures(predicted(COSTS), places_nothing=False)
    memory, lines = figure["data"]
    assert memory["y"] == lines["y"] == ["<b>the plan</b>: best", "left alone", "compact", "scatter"]
    assert memory["x"] == [1, 2.25, 1.25, 2] and lines["x"] == [3, 6.75, 3.75, 6]
    assert [memory["name"], lines["name"]] == [PARTS["memory_ns"][0], PARTS["lines_ns"][0]]


def test_a_plan_that_places_nothing_stands_before_the_best_that_was_tried() -> None:
    (figure,) = cost_figures(predicted(COSTS), places_nothing=True)
    assert figure["data"][0]["y"][:2] == ["<b>the plan</b>: left alone", "best"]


def test_earlier_plans_have_sums_only_and_other_objectives_nothing() -> None:
    (figure,) = cost_figures(predicted(COSTS, parts=False), places_nothing=False)
    assert [bars["x"] for bars in figure["data"]] == [[4, 9, 5, 8]]
    assert cost_figures({"costs": {}}, places_nothing=False) == []
    assert cost_figures({}, places_nothing=True) == []


def test_the_dearest_are_left_out() -> None:
    many = COSTS | {f"{number} nodes": 1e7 + number for number in range(20)}
    (figure,) = cost_figures(predicted(many), places_nothing=False)
    assert len(figure["data"][0]["y"]) == MOST and "12 more placements" in figure["about"]
    (figure,) = cost_figures(
        predicted(COSTS | dict.fromkeys("abcdefgh", 1e7) | {"i": 2e7}), places_nothing=False
    )
    assert len(figure["data"][0]["y"]) == MOST and "1 more placement was tried" in figure["about"]
