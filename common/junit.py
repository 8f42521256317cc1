"""Verdicts as a JUnit report, which CI systems show as tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from .console import printable, printable_lines


@dataclass(frozen=True)
class JUnitCase:
    """One test case: the thing judged, and why it failed (empty: it passed).

    kind and text: the type of the failure and its details, where there are any; seconds: how long it took,
    where that was measured.
    """

    classname: str
    name: str
    failure: str = ""
    kind: str = ""
    text: str = ""
    seconds: float | None = None


def junit_xml(name: str, cases: Sequence[JUnitCase], *, in_suites: bool = False) -> bytes:
    """The content of a report: one test suite of these cases; in_suites: within an element `testsuites`."""
    failures = sum(bool(case.failure) for case in cases)
    counts = {"tests": len(cases), "failures": failures, "errors": 0, "skipped": 0}
    suite = ElementTree.Element("testsuite", {"name": name, **{key: str(one) for key, one in counts.items()}})
    for case in cases:
        suite.append(_element(case))
    root = suite
    if in_suites:
        root = ElementTree.Element("testsuites")
        root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + text + b"\n"


def _element(case: JUnitCase) -> ElementTree.Element:
    attributes = {"classname": printable(case.classname), "name": printable(case.name)}
    if case.seconds is not None:
        attributes["time"] = f"{case.seconds:.3f}"
    element = ElementTree.Element("testcase", attributes)
    if case.failure:
        about = {"message": printable(case.failure), **({"type": case.kind} if case.kind else {})}
        ElementTree.SubElement(element, "failure", about).text = printable_lines(case.text) or None
    return element
