"""The main job on the example whose truth is known from its source: record, analyze, plan, launch."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import needs, succeed
from tests.support.programs import EXAMPLES, compiled
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.system

THREADS = 8
CELLS, ITERATIONS = 2048, 40  # a strip of two border zones, so that the serial start weighs little


def strip_of(thread: int) -> int:
    """The strip of a thread, as examples/stencil.c has it."""
    return thread // 2 if thread % 2 == 0 else (THREADS + 1) // 2 + thread // 2


@pytest.fixture(scope="module")
def stencil() -> Path:
    return compiled(EXAMPLES / "stencil.c")


@pytest.fixture(scope="module")
def trace(stencil: Path) -> Path:
    needs("qemu-x86_64")
    output = stencil.parent / "trace.db"
    succeed(
        "nprof", "record", "--backend", "emulate", "--period", "1", "-o", output, "--",
        stencil, str(THREADS), str(CELLS), str(ITERATIONS),
    )  # fmt: skip
    return output


@pytest.fixture(scope="module")
def analysis(trace: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(succeed("nmap", "analyze", trace, "--json"))
    return found


@pytest.fixture(scope="module")
def plan_file(trace: Path) -> Path:
    output = trace.parent / "plan.json"
    succeed("nmap", "plan", trace, "--machine", "4x2", "-o", output)
    return output


def test_the_trace_knows_all_threads(trace: Path) -> None:
    facts = json.loads(succeed("nprof", "info", trace, "--json"))
    assert facts["threads"] == THREADS
    assert [row["path"] for row in facts["per_thread"]] == ["0", *(f"0.{k}" for k in range(1, THREADS))]
    assert facts["unattributed"] == 0
    assert facts["losses"] == 0
    assert facts["period"] == 1


def test_communication_is_between_neighbouring_strips(analysis: dict[str, Any]) -> None:
    comm = np.array(analysis["comm"])
    strips = np.array([strip_of(thread) for thread in range(THREADS)])
    neighbours = np.abs(strips[:, None] - strips[None, :]) == 1
    assert comm[neighbours].sum() / comm.sum() > 0.9
    known = neighbours.astype(float)
    above = np.triu_indices(THREADS, 1)
    assert np.corrcoef(comm[above], known[above])[0, 1] > 0.95
    # Every pair of neighbours exchanges as much as every other.
    pairs = comm[neighbours]
    assert pairs.min() > 0.8 * pairs.max()


def test_loads_follow_the_refined_strips(analysis: dict[str, Any]) -> None:
    loads = np.array(analysis["loads"])
    odd = np.array([strip_of(thread) % 2 == 1 for thread in range(THREADS)])
    assert loads[odd].min() > 1.2 * np.delete(loads, 0)[~odd[1:]].max()


def test_the_plan_groups_exactly_the_neighbours(trace: Path, plan_file: Path) -> None:
    plan = json.loads(plan_file.read_bytes())
    groups: dict[int, set[int]] = {}
    for row in plan["threads"]:
        groups.setdefault(row["node"], set()).add(strip_of(row["thread"]))
    assert sorted(sorted(group) for group in groups.values()) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    baselines = plan["predicted"]["baselines"]
    assert plan["predicted"]["remote_comm"] < baselines["compact"]["remote_comm"]
    assert plan["predicted"]["remote_comm"] < baselines["scatter"]["remote_comm"]
    # One thread a line and no timestamps: the same trace gives the same bytes.
    again = trace.parent / "again.json"
    succeed("nmap", "plan", trace, "--machine", "4x2", "-o", again)
    assert plan_file.read_bytes() == again.read_bytes()


def test_the_planned_run_prints_what_the_plain_run_prints(plan_file: Path, stencil: Path) -> None:
    report = stencil.parent / "applied.json"
    words = [str(stencil), str(THREADS), str(CELLS), str(ITERATIONS)]
    plain = subprocess.run(words, capture_output=True, check=True, timeout=PATIENCE_S).stdout
    planned = succeed("nlaunch", "--plan", plan_file, "--remap", "--report", report, "--", *words)
    assert planned == plain
    applied = json.loads(report.read_bytes())
    assert applied["ok"] is True
    assert len(applied["threads"]) == THREADS
    assert all(row["planned"] == row["applied"] for row in applied["threads"])
