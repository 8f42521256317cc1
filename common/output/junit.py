"""Verdicts as a JUnit report, which CI systems show as tests."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from xml.etree import ElementTree

from ..errors import NumaplanError
from ..files.whole import FileName, write_document
from .console import printable, printable_lines


@dataclass(frozen=True)
class JUnitCase:
    """One test case: the thing judged, and why it failed (empty: it passed).

    kind and text: the type of the failure and its details, where there are any; seconds: how long it took,
    where that was measured; error: why it could not be judged.
    """

    classname: str
    name: str
    failure: str = ""
    kind: str = ""
    text: str = ""
    seconds: float | None = None
    error: str = ""


def junit_xml(name: str, cases: Sequence[JUnitCase], *, in_suites: bool = False) -> bytes:
    """The content of a report: one test suite of these cases; in_suites: within an element `testsuites`."""
    failures, errors = sum(bool(case.failure) for case in cases), sum(bool(case.error) for case in cases)
    counts = {"tests": len(cases), "failures": failures, "errors": errors, "skipped": 0}
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
    if case.error:
        ElementTree.SubElement(element, "error", {"message": printable(case.error)})
    return element


@contextmanager
def errors_in_junit(
    path: FileName | None, name: str, classname: str, *, in_suites: bool = False
) -> Iterator[None]:
    """Write an error of the block, or its interruption, into the report, too: the verdict of an earlier run
    may be that all is well.

    name: of the suite; classname: of its one case; None for a path: there is no report.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        told = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error) or type(error).__name__
        case = JUnitCase(classname, "error", error=told)
        with suppress(NumaplanError, OSError):  # the first error is the one to tell
            if path:
                write_document(path, junit_xml(name, [case], in_suites=in_suites))
        raise
