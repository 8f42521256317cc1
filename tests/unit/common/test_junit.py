"""Verdicts as JUnit: counts, failures with their details, and text that XML must escape."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from numaplan.common import JUnitCase, UsageError, errors_in_junit, junit_xml


def test_cases_are_counted_and_failures_told() -> None:
    cases = [
        JUnitCase("nmap.check", "good", seconds=1.5),
        JUnitCase("nmap.check", "bad <plan>", "costs 7% & more", "regression", "line one\nline two"),
    ]
    text = junit_xml("numaplan", cases)
    assert text.startswith(b'<?xml version="1.0" encoding="utf-8"?>\n<testsuite name="numaplan"')
    suite = ElementTree.fromstring(text)
    assert (suite.tag, suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        "testsuite",
        "2",
        "1",
        "0",
    )
    good, bad = suite
    assert (good.get("time"), len(good)) == ("1.500", 0)
    failure = bad[0]
    assert (bad.get("name"), failure.get("message"), failure.get("type"), failure.text) == (
        "bad <plan>",
        "costs 7% & more",
        "regression",
        "line one\nline two",
    )


def test_a_suite_may_stand_among_others() -> None:
    root = ElementTree.fromstring(
        junit_xml("nlab compare", [JUnitCase("nlab.gate", "a > b")], in_suites=True)
    )
    assert (root.tag, root[0].tag, root[0].get("name")) == ("testsuites", "testsuite", "nlab compare")


def test_an_error_replaces_the_verdict_of_an_earlier_run(tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    path.write_bytes(junit_xml("numaplan", [JUnitCase("nmap.check", "plan.json")]))
    with pytest.raises(UsageError), errors_in_junit(path, "numaplan", "nmap.check"):
        raise UsageError("trace.db: damaged", "record it again")
    suite = ElementTree.parse(path).getroot()
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["1", "0", "1"]
    error = suite.find("testcase/error")
    assert error is not None and error.get("message") == "trace.db: damaged — record it again"


def test_an_interrupted_command_leaves_no_verdict_of_an_earlier_run(tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    path.write_bytes(junit_xml("nlab compare", [JUnitCase("nlab.gate", "a > b")]))
    with pytest.raises(KeyboardInterrupt), errors_in_junit(path, "nlab compare", "nlab.run"):
        raise KeyboardInterrupt
    error = ElementTree.parse(path).getroot().find("testcase/error")
    assert error is not None and error.get("message") == "interrupted"


def test_an_error_is_told_where_no_report_can_be_written(tmp_path: Path) -> None:
    for path in (None, tmp_path / "none" / "out.xml"):
        with pytest.raises(UsageError, match="damaged"), errors_in_junit(path, "numaplan", "nmap.check"):
            raise UsageError("damaged")
