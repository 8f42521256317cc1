"""Who reads a buffer stays with who fills it, also where both shared a cache as they were recorded."""

from pathlib import Path

import pytest

from numaplan.mapper import Plan
from tests.support.commands import succeed
from tests.support.emulating import MARKS, record
from tests.support.programs import OPTIMISED, PROGRAMS, compiled

pytestmark = [*MARKS, pytest.mark.slow]
LINES, WAY_NS = 1 << 17, 143


def test_a_thread_that_empties_a_buffer_is_on_the_node_of_the_one_that_fills_it(tmp_path: Path) -> None:
    """There next to nothing costs, as the buffer left the one's own caches and is in both's last one."""
    program = compiled(PROGRAMS / "recording/exchanged_lines.c", flags=(*OPTIMISED, "-D_GNU_SOURCE"))
    record(program, tmp_path / "t.db", "buffer 1", "--machine", "2x2", "--period", "10000")
    succeed("nmap", "plan", tmp_path / "t.db", "--machine", "2x2", "-o", tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    assert len({thread.node for thread in plan.threads}) == 1
    parts = plan.predicted.candidate_parts
    apart = LINES * WAY_NS
    assert parts["compact"]["lines_ns"] == pytest.approx(apart, rel=0.05)  # one on each node
    assert plan.predicted.cost_parts["lines_ns"] < apart / 10
