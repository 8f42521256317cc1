"""Commands that are shown can be given to a shell, and to a terminal."""

import subprocess

import pytest

from numaplan.common import shell_line


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
