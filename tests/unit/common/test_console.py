"""Commands that are shown can be given to a shell, and to a terminal."""

import io
import json
import subprocess

import msgspec
import pytest

from numaplan.common import make_console, print_json, print_point, shell_line


@pytest.mark.parametrize(
    "word",
    [
        "",
        "a b",
        "it's",
        "line\nline",
        "\x1b[31mred",
        "tab\tnew\nline 'quoted' back\\slash",
        "caf\udce9",
        "\x9b2J",
    ],
)
def test_a_command_that_is_shown_means_what_it_did(word: str) -> None:
    line = shell_line(["printf", "%s|", word, "end"])
    assert line.replace("\n", "").isprintable()
    said = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout
    assert said == word.encode(errors="surrogateescape") + b"|end|"


def test_json_reaches_a_terminal_as_text_and_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["\x9b2J", "\x7f", "\u202e", "\U000e0001", "é\n", "plain"]
    print_json(msgspec.json.encode(names))
    print_json(msgspec.json.encode(["\x7f"]))
    first, second = capsys.readouterr().out.splitlines()
    assert json.loads(first) == names
    assert first.isprintable()
    assert second == '["\\u007f"]'


def test_lines_of_a_point_begin_below_its_text() -> None:
    out = io.StringIO()
    console = make_console(file=out, width=20)
    print_point(console, "  1. ", "threads 0.1 and 0.2 share a-word-that-is-never-cut with 0.3")
    print_point(console, "  2. ", "\x1b[31mred")
    assert out.getvalue().split("\n") == [
        "  1. threads 0.1 and",
        "     0.2 share",
        "     a-word-that-is-never-cut",
        "     with 0.3",
        "  2. \N{REPLACEMENT CHARACTER}[31mred",
        "",
    ]
