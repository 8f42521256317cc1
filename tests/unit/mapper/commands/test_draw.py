"""Tables on narrow terminals: nothing is cut off with an ellipsis, and what is left out is said."""

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.mapper import PlanOptions, PlanRegion, RegionKey, Run, Workload, make_plan
from numaplan.mapper.commands.draw.placement import show_comparison, show_machine, show_plan
from numaplan.mapper.planning.judge.compare import compare
from numaplan.profiler import Machine
from tests.support.outside import plan_of_threads

rng = np.random.default_rng(3)
COMM = np.rint(np.triu(rng.random((64, 64)), 1) * 1e9)
WORKLOAD = Workload(
    threads=[("p0.1.2", f"0.{i}") for i in range(64)],
    comm=COMM + COMM.T,
    loads=np.rint(rng.random(64) * 1e8),
    sources={},
)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_comparison_fits(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    workload = replace(
        WORKLOAD, threads=WORKLOAD.threads[:16], comm=WORKLOAD.comm[:16, :16], loads=WORKLOAD.loads[:16]
    )
    rows = compare(workload, Machine.load("4x4"), "all", "all", seed=0, effort="fast")
    show_comparison(rows)
    shown = capsys.readouterr().out
    assert "…" not in shown and max(map(len, shown.splitlines())) <= width
    for row in rows:
        assert f"{row.method} " in shown and f"{row.remote_comm:.5g}" in shown
    assert ("left out" in shown) == ("of means" not in shown.split("left out")[0])
    assert width > 60 or "left out" in shown
    assert width < 80 or f"{rows[0].hop_cost:.5g}" in shown
    assert width < 200 or all(f" {row.value / row.lower_bound:.3f} " in shown for row in rows)


def test_comparison_has_one_unit_for_one_thing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loads are misses, samples or accesses, by objective: shares of all load, as `nmap plan` shows them."""
    monkeypatch.setenv("COLUMNS", "200")
    four = replace(WORKLOAD, threads=WORKLOAD.threads[:4], comm=WORKLOAD.comm[:4, :4], loads=np.full(4, 3.0))
    row = compare(four, Machine.load("2x2"), "compact", "remote", seed=0, effort="fast")[0]
    uneven = replace(row, node_loads=(75.0, 25.0), load_std=25.0, load_std_mean=12.5, cost=2.5e6, seconds=0.1)
    more = {"node_loads": (7500.0, 2500.0), "load_std": 2500.0, "load_std_mean": 1250.0}
    show_comparison([uneven, replace(uneven, **more, objective="time")])
    shown = capsys.readouterr().out.splitlines()
    tables = [line.split() for line in shown if line.startswith("compact ")]
    assert tables[0] == tables[1] and {"25.00%", "12.50%", "2.5", "100.00"} <= set(tables[0])
    assert " cost ms " in shown[1] and shown[1].rstrip().endswith(" search ms")


@pytest.mark.parametrize("width", [60, 80])
def test_plan_fits(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    plan = make_plan(WORKLOAD, Machine.load("16x4"), PlanOptions(effort="fast")).plan
    name = "a_library_with_a_long_name.so.1+0xdeadbeefdeadbeef_and_more_of_it"
    region = PlanRegion(
        region=RegionKey(kind="heap", name=name, bytes=1 << 40),
        policy="interleave",
        runs=tuple(Run(offset=i << 36, bytes=1 << 36, node=i) for i in range(0, 16, 2)),
    )
    show_plan(replace(plan, memory=(region,)))
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert all(f"p0.1.2:0.{i} " in shown for i in range(64))
    assert "interleave" in shown and "deadbeef" in shown
    boxes = [line for line in shown.splitlines() if line.startswith("│")]
    assert boxes and max(map(len, boxes)) <= width


def test_of_very_many_threads_the_first_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_of_threads([("p0", f"0.{n}") for n in range(2000)], machine=Machine.load("2x2"))
    show_plan(plan)
    shown = capsys.readouterr().out
    assert shown.count("… and 936 more") == 2
    assert "0.127" in shown and "0.128" not in shown


def test_figures_of_a_plan_that_was_edited_are_not_taken_for_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = make_plan(WORKLOAD, Machine.load("4x16"), PlanOptions(effort="fast")).plan
    show_plan(plan)
    assert "moved since" not in capsys.readouterr().out
    heaviest = max(range(64), key=lambda n: WORKLOAD.loads[n])
    node = next(node for node in plan.machine.nodes if node.id != plan.threads[heaviest].node)
    moved = replace(plan.threads[heaviest], node=node.id, cpus=node.cpus[:1])
    edited = {heaviest: moved}
    show_plan(replace(plan, threads=tuple(edited.get(n, one) for n, one in enumerate(plan.threads))))
    assert "moved since" in capsys.readouterr().out
    pool = tuple(replace(one, node=node.id, pool=1) for one in plan.threads)
    show_plan(replace(plan, threads=pool))
    assert "moved since" not in capsys.readouterr().out


@pytest.mark.parametrize("width", [40, 60, 80])
def test_machine_fits(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    show_machine(Machine.load("16x4"))
    shown = capsys.readouterr().out
    assert "…" not in shown and max(map(len, shown.splitlines())) <= width
    assert ("distance " in shown) != ("too many" in shown)


def test_cpus_that_the_machine_leaves_out_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    machine = replace(Machine.load("2x32"), nodeless_cpus=(70,))
    show_machine(machine)
    assert capsys.readouterr().out.count("1 cpu (70) left out: in no node here\n") == 1
    notes = make_plan(WORKLOAD, machine, PlanOptions(effort="fast")).notes
    assert notes.count("1 cpu (70) left out: in no node here") == 1
