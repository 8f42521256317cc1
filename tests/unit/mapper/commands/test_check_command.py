"""`nmap check` that cannot judge: its report for CI says so, too."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from numaplan.mapper.commands.main import main


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
