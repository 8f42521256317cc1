"""`nmap check` that cannot judge: its report for CI says so, too."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from numaplan.common import UsageError
from numaplan.mapper import workload_of_traces
from numaplan.mapper.commands.main import main
from numaplan.mapper.pytest_plugin import check_placement
from numaplan.mapper.scaling.scaled import scaled_workload
from numaplan.profiler import EVENT_CODE
from tests.support.traces import write_trace


@pytest.mark.parametrize(
    "words, says",
    [
        (("none.db", "--baseline", "none.json"), "none.json"),
        (("none.db", "--baseline", "none.json", "--max-regress", "x"), "x"),
    ],
)
def test_the_report_of_an_earlier_run_is_not_left(
    words: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "out.xml"
    report.write_text('<testsuite name="numaplan" tests="1" failures="0" errors="0" />')
    assert main(["check", *words, "--junit", str(report)]) == 2
    suite = ElementTree.parse(report).getroot()
    error = suite.find("testcase/error")
    assert suite.get("errors") == "1" and error is not None
    message = error.get("message", "")
    assert says in message and message in capsys.readouterr().err


def test_first_touches_alone_do_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They show no communication: any placement was as good as another, and the build was green."""
    threads = [(0, "p0", "0", 1, 1, "t", 0, -1), (1, "p0", "0.1", 2, 1, "t", 0, -1)]
    samples = {"time_ns": range(100), "thread": [i % 2 for i in range(100)], "addr": 0x1000, "is_write": True}
    seen = write_trace(tmp_path / "seen.db", samples, threads)
    faults = write_trace(tmp_path / "t.db", {**samples, "event": EVENT_CODE["fault"]}, threads)
    plan, report = tmp_path / "plan.json", tmp_path / "out.xml"
    assert main(["plan", str(seen), "-o", str(plan), "--machine", "2x2", "--objective", "remote"]) == 0
    assert main(["check", str(faults), "--baseline", str(plan), "--junit", str(report)]) == 2
    assert "t.db has first touches only" in capsys.readouterr().err
    assert ElementTree.parse(report).getroot().get("errors") == "1"
    with pytest.raises(pytest.fail.Exception, match="first touches only"):
        check_placement(faults, plan)
    with pytest.raises(UsageError, match="first touches only"):
        scaled_workload([seen, faults], 4, force=True)
    with pytest.raises(UsageError, match="first touches only"):
        workload_of_traces([faults])
