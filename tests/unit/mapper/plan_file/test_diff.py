"""`nmap diff --json`: the lines and the document tell of the same differences."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from numaplan.mapper import Plan, Run, Scales
from numaplan.mapper.commands.main import main
from numaplan.mapper.plan_file.diff import diff_document, differences
from tests.support.small_plans import HEAP, STATIC, plan_of


def test_plans_that_are_the_same() -> None:
    plan = plan_of((HEAP, "bind"))
    assert differences(plan, plan) == []
    assert diff_document(plan, plan) == {
        "schema": "numaplan/diff/1",
        "same": True,
        "machine": None,
        "alone": None,
        "threads": [],
        "memory": [],
        "predicted": {},
    }


def test_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = plan_of((HEAP, "bind"), (STATIC, "bind"))
    (head, last), (heap, static) = first.threads, first.memory
    second = replace(
        first,
        threads=(replace(head, cpus=(1,)), replace(last, node=0, cpus=(0,))),
        memory=(replace(heap, runs=(Run(offset=0, bytes=4096, node=1),)), static),
        predicted=replace(first.predicted, remote_share=0.5, local_share=0.75),
        alone="as good",
    )
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for plan, path in zip((first, second), paths, strict=True):
        plan.save(path)
    assert main(["diff", *paths, "--json"]) == 0
    found: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)
    assert not found["same"] and found["machine"] is None
    assert found["alone"] == {"first": "", "second": "as good"}
    assert found["threads"] == [
        {
            "process": "p0",
            "path": "0",
            "first": {"node": 0, "cpus": [0]},
            "second": {"node": 0, "cpus": [1]},
        },
        {
            "process": "p0",
            "path": "0.1",
            "first": {"node": 1, "cpus": [2]},
            "second": {"node": 0, "cpus": [0]},
        },
    ]
    (memory,) = found["memory"]
    assert memory["region"] == heap.title
    assert memory["first"] == {"policy": "bind", "nodes": [0, 1], "scales": False}
    assert memory["second"] == {"policy": "bind", "nodes": [1], "scales": False}
    assert found["predicted"]["local_share"] == {"first": None, "second": 0.75}
    assert len(differences(first, second)) == 2 + 1 + 1 + len(found["predicted"])


def test_what_one_plan_lacks() -> None:
    first, second = plan_of((HEAP, "bind"), threads=2), plan_of((STATIC, "bind"), threads=3)
    found = diff_document(first, second)
    assert [(one["path"], one["first"] is None) for one in found["threads"]] == [("0.2", True)]
    assert [(one["first"] is None, one["second"] is None) for one in found["memory"]] == [
        (False, True),
        (True, False),
    ]


def test_names_that_differ_are_no_difference() -> None:
    """As the lines have it: of memory that has two names in the source, what counts is where it lives."""
    plan = plan_of((HEAP, "bind"))
    named: Plan = replace(plan, memory=(replace(plan.memory[0], source="table"),))
    assert differences(plan, named) == [] and diff_document(plan, named)["same"]


def test_waiting_has_the_unit_that_plans_show() -> None:
    plan = plan_of((HEAP, "bind"))
    dear = replace(plan, predicted=replace(plan.predicted, cost=63_639_400.0))
    cheap = replace(plan, predicted=replace(plan.predicted, cost=344_380.0))
    assert differences(dear, cheap) == ["cost: 63.6394 ms -> 0.34438 ms"]
    assert differences(plan, cheap) == ["cost: unknown -> 0.34438 ms"]


def test_memory_that_scales_is_the_same_memory_at_another_size() -> None:
    """Plans from recordings of two input sizes: a block of the same shares is no two blocks."""
    larger = replace(HEAP, bytes=4 * HEAP.bytes)
    first, second = (scaling(plan_of((key, "bind"))) for key in (HEAP, larger))
    assert differences(first, second) == [] and diff_document(first, second)["same"]
    moved = replace(second, memory=(replace(second.memory[0], policy="interleave"),))
    assert differences(first, moved) == [
        f"{first.memory[0].title} ({HEAP.bytes} bytes): bind on 0, 1 -> interleave on 0, 1"
    ]
    assert len(diff_document(first, moved)["memory"]) == 1


def test_memory_of_its_planned_size_is_another_at_another_size() -> None:
    first, second = plan_of((HEAP, "bind")), plan_of((replace(HEAP, bytes=4 * HEAP.bytes), "bind"))
    assert len(differences(first, second)) == len(diff_document(first, second)["memory"]) == 2


def test_which_of_two_is_meant_is_not_guessed() -> None:
    sizes = [replace(HEAP, bytes=factor * HEAP.bytes) for factor in (2, 3)]
    first = scaling(plan_of((HEAP, "bind")))
    second = scaling(plan_of(*[(key, "bind") for key in sizes]))
    assert len(differences(first, second)) == 3


def test_threads_are_told_of_in_their_order() -> None:
    first, second = plan_of(threads=12), plan_of(threads=1)
    assert [line.split()[2] for line in differences(first, second)][-3:] == ["0.9:", "0.10:", "0.11:"]


def scaling(plan: Plan) -> Plan:
    return replace(plan, memory=tuple(replace(one, scales=Scales(known="shares")) for one in plan.memory))
