"""The plan file: round trips, its layout, and every way it can be wrong."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.mapper import (  # fmt: skip
    Metrics,
    Plan,
    PlanApp,
    PlanMachine,
    PlanRegion,
    PlanThread,
    Predicted,
    RegionKey,
    Run,
)
from numaplan.mapper.plan_file.summary import threads_by_node
from numaplan.profiler import Machine
from tests.support.properties import examples


def small_plan(threads: int = 4, regions: int = 2) -> Plan:
    """A plan of a 2x2 machine."""
    costs = {"remote_comm": 1.5, "remote_share": 0.25, "hop_cost": 60.0, "load_std": 0.0}
    return Plan(
        app=PlanApp(argv=("./app", "a b", "ü"), build_id="c0ffee", threads=threads),
        machine=PlanMachine.of(Machine.load("2x2")),
        method="best",
        objective="balanced",
        threads=tuple(
            PlanThread(path=f"0.{i}" if i else "0", thread=i, node=i % 2, cpus=(2 * (i % 2),), load=0.1 * i)
            for i in range(threads)
        ),
        memory=tuple(
            PlanRegion(
                region=RegionKey(kind="heap", name=f"app+0x{i:x}", bytes=8192, sequence=i),
                policy="bind",
                runs=(Run(offset=0, bytes=4096, node=1), Run(offset=4096, bytes=4096, node=0)),
            )
            for i in range(regions)
        ),
        predicted=Predicted(
            **costs, node_loads=(1.0, 2.0), baselines={"compact": Metrics(**costs, node_loads=(3.0, 0.0))}
        ),
        provenance={"trace": "sha256:00", "options": {"seed": 0}, "version": "1"},
    )


def altered(*path: Any, value: Any) -> bytes:
    """The small plan's text with one entry replaced."""
    content = msgspec.json.decode(small_plan().to_json())
    place = content
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return msgspec.json.encode(content)


@given(threads=st.integers(0, 9), regions=st.integers(0, 5))
def test_round_trip(threads: int, regions: int) -> None:
    plan = small_plan(threads, regions)
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.from_json(plan.to_json()).to_json() == plan.to_json()


def test_file_round_trip_and_layout(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    small_plan().save(path)
    assert Plan.load(path) == small_plan()
    lines = path.read_text().splitlines()
    assert sum('"path"' in line for line in lines) == 4  # one thread a line
    assert sum('"region"' in line for line in lines) == 2
    assert [key for line in lines if (key := line.split('"')[1:2]) and not line.startswith(" ")] == [
        ["schema"], ["app"], ["machine"], ["method"], ["objective"], ["threads"], ["memory"], ["predicted"],
        ["alone"], ["provenance"],
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "data,words",
    [
        (b"", "not JSON"),
        (b"not json", "not JSON"),
        (b'{"schema": "numaplan/plan/1"', "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[1, 2]", "Expected `object`"),
        (b"{}", "no 'schema', so not a plan"),
        (Machine.load("2x2").to_json(), "schema 'numaplan/machine/1'.* give a plan that 'nmap plan' wrote"),
        (altered("schema", value="numaplan/job/1"), "schema 'numaplan/job/1'.* 'nlaunch --job'"),
        (altered("schema", value="numaplan/plan/2"), "this version reads numaplan/plan/1"),
        (altered("threads", value=None), "missing required field `threads`"),
        (altered("predicted", "today", value={"threads": "x"}), "predicted: today: threads 'x'"),
        (altered("predicted", "today", value={"threads": ""}), "predicted: today: threads ''"),
        (altered("threads", 1, "node", value=7), r"threads\[1\] \(p0 0\.1\): no node 7"),
        (altered("threads", 1, "cpus", value=[0]), "cpu 0 is not on node 1"),
        (altered("threads", 1, "cpus", value=[]), "no cpus"),
        (altered("threads", 1, "path", value="0"), "listed twice"),
        (altered("threads", 1, "path", value="../x"), "not a creation path"),
        (altered("threads", 1, "load", value=-1.0), r"threads\[1\]\.load"),
        (altered("threads", 1, "load", value="1"), "Expected `float`"),
        (altered("app", "threads", value=2), "app.threads is 2 with 4 threads"),
        (altered("memory", 0, "region", "bytes", value=-5), r"Expected `int` >= 0.*region\.bytes"),
        (altered("memory", 0, "runs", 0, "bytes", value=0), "Expected `int` >= 1"),
        (altered("memory", 0, "runs", 0, "bytes", value=1 << 70), "runs"),
        (altered("memory", 0, "runs", 1, "offset", value=0), "overlap or go back"),
        (altered("memory", 0, "runs", 1, "bytes", value=8192), "past the region's end"),
        (altered("memory", 0, "runs", 1, "node", value=9), r"memory\[0\].*no node 9"),
        (altered("memory", 0, "policy", value="maybe"), "policy"),
        (altered("machine", "fingerprint", value="sha256:0"), "does not match its fingerprint"),
        (altered("machine", "nodes", 0, "cpus", value=[0]), "machine"),
        (altered("predicted", "node_loads", value=[1.0]), "1 node loads for 2 nodes"),
    ],
)
def test_wrong_plans_are_refused_in_one_line(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=words) as error:
        Plan.load(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_missing_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        Plan.load(tmp_path / "none.json")
    with pytest.raises(UsageError, match="Is a directory"):
        Plan.load(tmp_path)


@examples(300)
@given(st.data())
def test_damage_gives_a_plan_or_a_clear_error(data: st.DataObject) -> None:
    text = bytearray(small_plan().to_json())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        if data.draw(st.booleans()):
            text[place] = data.draw(st.integers(0, 255))
        else:
            del text[place : place + data.draw(st.integers(1, 40))]
        if not text:
            break
    try:
        Plan.from_json(bytes(text), "damaged")
    except UsageError as error:
        assert str(error).startswith("damaged: ")


@pytest.mark.slow
@given(
    st.recursive(st.none() | st.integers() | st.text(max_size=4), lambda inner: st.lists(inner, max_size=3))
)
def test_any_json_in_any_field_is_answered(value: object) -> None:
    content = msgspec.json.decode(small_plan().to_json())
    for key in list(content):
        wrong = {**content, key: value}
        try:
            Plan.from_json(msgspec.json.encode(wrong), "x")
        except (UsageError, OverflowError) as error:
            assert isinstance(error, UsageError)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([("p0", "0"), *[("p0", f"0.{n}") for n in (1, 2, 3, 4, 6)]], "0, 0.1, 0.2, 0.3, 0.4, 0.6"),
        ([("p0", "0"), *[("p0", f"0.{n}") for n in range(1, 1469)]], "0, 0.1 … 0.1468"),
        ([(f"p0.{n}", "0") for n in range(8, 13)], "p0.8:0 … p0.12:0"),
        ([("p0", "0"), *[("p0.1", f"0.2.{n}") for n in range(9, 14)]], "p0:0, p0.1:0.2.9 … p0.1:0.2.13"),
        ([("p0", f"0.{n}") for n in (5, 4, 3, 2, 1)], "0.5, 0.4, 0.3, 0.2, 0.1"),
    ],
)
def test_many_threads_that_follow_one_another_are_named_by_first_and_last(
    names: list[tuple[str, str]], shown: str
) -> None:
    threads = tuple(
        PlanThread(process=process, path=path, thread=n, node=0, cpus=(0,), load=1.0)
        for n, (process, path) in enumerate(names)
    )
    assert threads_by_node(msgspec.structs.replace(small_plan(), threads=threads)) == [(0, shown)]
