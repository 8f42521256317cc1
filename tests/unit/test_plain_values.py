"""Commands read plain values as typer does, without pydantic."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from numaplan.common.cli import new_app, new_command, run_app

seen: dict[str, Any] = {}


def command(
    words: Annotated[list[str] | None, typer.Argument()] = None,
    number: Annotated[int, typer.Option(min=1, max=9)] = 3,
    share: Annotated[float | None, typer.Option()] = None,
    path: Annotated[Path, typer.Option()] = Path("x"),
    several: Annotated[list[int] | None, typer.Option()] = None,
    flag: Annotated[bool, typer.Option("--flag/--no-flag")] = False,
    real: Annotated[Path | None, typer.Option(exists=True)] = None,
) -> None:
    seen.update(words=words, number=number, share=share, path=path, several=several, flag=flag, real=real)


def run(*words: str) -> int:
    seen.clear()
    return run_app(new_command(command), "tool", list(words))


def test_values_have_their_types() -> None:
    assert run() == 0
    assert (seen["number"], seen["share"], seen["path"], seen["flag"]) == (3, None, Path("x"), False)
    assert not seen["words"] and not seen["several"]
    assert (
        run(
            "a", "b", "--number", "9", "--share", "1e-3", "--path", "y/z", "--several", "1", "--several", "-2"
        )
        == 0
    )
    assert seen["words"] == ["a", "b"] and seen["several"] == [1, -2]
    assert (seen["number"], seen["share"], seen["path"]) == (9, 0.001, Path("y/z"))
    assert run("--flag") == 0 and seen["flag"] is True


@pytest.mark.parametrize(
    "words,told",
    [
        (["--number", "x"], "'--number': 'x' is not a whole number"),
        (["--number", "0"], "'--number': 0 is not in the range 1 <= x <= 9"),
        (["--number", "1.5"], "'--number': '1.5' is not a whole number"),
        (["--share", "much"], "'--share': 'much' is not a number"),
        (["--several", "1", "--several", "two"], "'--several': 'two' is not a whole number"),
        (["--real", "/no/such/file"], "'--real'"),
        (["--number"], "requires an argument"),
        (["--unknown"], "No such option"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tool: error: ") and told in line


def test_what_is_missing_is_told_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    app = new_app("tools")

    @app.command()
    def check(plan: Path, baseline: Annotated[Path, typer.Option()]) -> None:
        """Check a plan.

        Example: tool check new.json --baseline old.json
        """

    @app.command()
    def bare(plan: Path) -> None:
        """Without one."""

    for words, told in (
        (
            ["check", "a"],
            "Missing option '--baseline' — give it, as in: tool check new.json --baseline old.json",
        ),
        (["bare"], "Missing argument 'plan' — see 'tool bare --help'"),
        (["bare", "--no"], "No such option: --no — see 'tool bare --help'"),
        (["none"], "No such command 'none' — see 'tool --help'"),
    ):
        assert run_app(app, "tool", words) == 2
        assert capsys.readouterr().err == f"tool: error: {told}\n"


def test_commands_do_not_load_what_they_do_not_need(tmp_path: Path) -> None:
    """A plan of a matrix needs neither duckdb nor pandas nor pydantic, nor the rich tables."""
    (tmp_path / "comm.csv").write_text("0,1\n1,0\n")
    script = (
        "import sys; from numaplan.mapper.cli_full import app; from numaplan.common.cli import run_app;"
        "code = run_app(app, 'nmap', sys.argv[1:]);"
        "heavy = {'duckdb', 'pandas', 'pydantic', 'scipy', 'rich.table', 'pyarrow'} & set(sys.modules);"
        "sys.exit(f'{code} {sorted(heavy)}')"
    )
    words = ["plan", "--comm", "comm.csv", "--machine", "2x1", "--seed", "3"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "0 []"
