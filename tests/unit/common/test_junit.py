"""Verdicts as JUnit: counts, failures with their details, and text that XML must escape."""

from xml.etree import ElementTree

from numaplan.common import JUnitCase, junit_xml


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
