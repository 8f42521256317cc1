"""Runs whose program failed are marked, and their counts are nobody's result."""

import io
import math
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from numaplan.common import NotSoError
from numaplan.lab.commands.main import main
from numaplan.lab.runs.comparing import raise_for
from numaplan.lab.runs.counts import Counts
from numaplan.lab.runs.export import html, junit
from numaplan.lab.runs.gate import check_gate
from numaplan.lab.runs.results import LabCompare, LabRun, lab_run, summarize
from numaplan.lab.runs.tables import show_compare
from numaplan.machine import Machine

MACHINE = Machine.load("2x1")
ARGV = ["./app"]


def run(local: int, exit_code: int = 0, said: str = "", *, late: bool = False, well: int = 0) -> LabRun:
    """A run with so many of 100 accesses local."""
    counted = np.zeros((2, 7), dtype=np.int64)
    counted[0, :2] = local, 100 - local
    done = lab_run(
        MACHINE,
        Counts(2, counted, {}, 0, 0, {}),
        config="default",
        argv=ARGV,
        kernel={},
        exit_code=exit_code,
        timed_out=late,
        seconds=3.0,
        well=well,
    )
    done.said = said
    return done


def compared(**runs: list[LabRun]) -> LabCompare:
    configs = {name: summarize(done) for name, done in runs.items()}
    return LabCompare(machine="2x1", argv=ARGV, boot_seconds=1.0, configs=configs)


def table(result: LabCompare) -> list[str]:
    text = io.StringIO()
    show_compare(result, text)
    return text.getvalue().splitlines()


def test_a_failed_configuration_has_its_programs_last_line_and_no_shares() -> None:
    result = compared(default=[run(90)], compact=[run(77, 1, "bind: no such [address]")])
    lines = table(result)
    assert "90.0%" in next(line for line in lines if line.startswith("default"))
    row = next(line for line in lines if line.startswith("compact"))
    assert "failed" in row and "%" not in row
    assert lines[-1] == "compact failed: the program exited with 1: bind: no such [address]"
    page = html(result, []).decode()
    assert "bind: no such [address]" in page and "77.0" not in page
    assert b"bind: no such [address]" in junit(result, [])
    with pytest.raises(NotSoError, match=r"compact: the program exited with 1: bind"):
        raise_for(result, [])


def test_medians_are_of_the_runs_that_did_not_fail() -> None:
    result = compared(default=[run(90), run(10, 124, late=True), run(80)])
    assert result.configs["default"].local_share.median == pytest.approx(0.85)
    lines = table(result)
    assert "85.0%" in next(line for line in lines if line.startswith("default"))
    assert lines[-1] == "default failed in 1 of 3 runs: the program ran out of time after 3 s"


def test_json_says_failed_and_keeps_exit_codes() -> None:
    config = msgspec.to_builtins(compared(default=[run(90), run(10, 37)]))["configs"]["default"]
    assert config["failed"] == 1
    assert [(one["failed"], one["exit_code"]) for one in config["runs"]] == [(False, 0), (True, 37)]


def test_a_program_may_tell_its_answer_by_its_exit_code() -> None:
    runs = [run(90, 20, well=20), run(10, well=20), run(10, 20, late=True, well=20)]
    config = compared(default=runs).configs["default"]
    assert [one.failed for one in config.runs] == [False, True, True]
    assert config.local_share.median == pytest.approx(0.9)
    assert config.problem() == "the program exited with 0"


@pytest.mark.parametrize(
    "gate", ["compact.local_share > 0.5", "compact.local_share <= 0.5 * default.local_share"]
)
def test_no_gate_holds_of_what_failed(gate: str) -> None:
    verdict = check_gate(gate, compared(default=[run(90)], compact=[run(10, 1)]).configs)
    assert not verdict.ok
    assert math.isnan(verdict.left)


@pytest.mark.parametrize(
    "words", [("compare", "--machine", "2x1", "--gate", "none"), ("cluster", "--job", "none")]
)
def test_what_cannot_be_run_is_an_error_in_the_report(words: tuple[str, ...], tmp_path: Path) -> None:
    report = tmp_path / "out.xml"
    report.write_text('<testsuites><testsuite name="nlab" tests="1" failures="0" errors="0" /></testsuites>')
    assert main([*words, "--junit", str(report), "--", "true"]) == 2
    suite = ElementTree.parse(report).getroot()[0]
    assert suite.get("errors") == "1" and suite.find("testcase/error") is not None
