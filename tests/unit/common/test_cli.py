"""Command lines: values and their types, what is a program's, misuse in one line, the help."""

from pathlib import Path
from typing import Annotated

import pytest

from numaplan.common import Argument, Command, Json, Option, run_command, run_tool

ran: list[Command] = []


class Tool(Command, frozen=True):
    """Do something.

    Example: tool --number 3 a b
    """

    words: Annotated[list[str], Argument("WORD", help="Any [words], 100% plain.")] = []  # noqa: RUF012
    number: Annotated[int, Option("-n", "--number", help="A number.", least=1, most=9)] = 3
    share: Annotated[float | None, Option(help="A share.")] = None
    path: Annotated[Path, Option(help="A path.", metavar="FILE")] = Path("x")
    several: Annotated[list[int], Option("--several", "-s", help="Numbers.")] = []  # noqa: RUF012
    flag: Annotated[bool, Option("--flag", off="--no-flag", help="Or not.", group="More")] = True
    any_of: Annotated[list[str] | None, Option(help="Words, or none.")] = None
    two_words: Annotated[bool, Option(help="Without a name of its own.")] = False
    as_json: Json = False

    def run(self) -> None:
        ran.append(self)


class Check(Command, frozen=True):
    """Check a plan.

    Example: tool check new.json --baseline old.json
    """

    plan: Annotated[Path, Argument("PLAN", help="The plan.")]
    baseline: Annotated[Path, Option(help="Another.")]


class Start(Command, frozen=True):
    """Start a program."""

    argv: Annotated[list[str], Argument("APP", help="The program.", program=True)]
    name: Annotated[str, Option(help="A name.")] = ""
    quiet: Annotated[bool, Option("-q", help="No word.")] = False

    def run(self) -> int:
        ran.append(self)
        return 7


def tool(*words: str) -> Command | None:
    ran.clear()
    assert run_command(Tool, "tool", words) == 0
    return ran[0] if ran else None


def tools(*words: str) -> int:
    commands = {"check": "test_cli:Check", "start": "test_cli:Start"}
    return run_tool("tools", "Some.\n\nExample: tools check x", commands, "tests.unit.common", words)


def test_values_have_their_types() -> None:
    assert tool() == Tool()
    line = "a --share 1e-3 b --path=y/z --several 1 -n9 --several -2 --no-flag --two-words --json"
    line += " --any-of x --any-of y -- -c"
    assert tool(*line.split()) == Tool(
        words=["a", "b", "-c"],
        number=9,
        share=0.001,
        path=Path("y/z"),
        several=[1, -2],
        any_of=["x", "y"],
        flag=False,
        two_words=True,
        as_json=True,
    )
    assert tool("--no-flag", "--flag", "-") == Tool(words=["-"])


@pytest.mark.parametrize(
    "words,told",
    [
        (["--number", "x"], "-n/--number: 'x' is not a whole number"),
        (["--number", "0"], "-n/--number: 0 is not in the range 1 <= x <= 9"),
        (["--number", "10"], "10 is not in the range"),
        (["--number", "1.5"], "'1.5' is not a whole number"),
        (["--share", "much"], "--share: 'much' is not a number"),
        (["--several", "1", "--several", "two"], "--several/-s: 'two' is not a whole number"),
        (
            ["--number"],
            "-n/--number: expected one argument — one that begins with a dash is given as --number=",
        ),
        (["--flag=yes"], "--flag/--no-flag: takes no value, not 'yes'"),
        (["--numbr", "3"], "no such option: --numbr (did you mean --number?)"),
        (["--numb=3"], "no such option: --numb (did you mean --number?)"),
        (["a", "-x"], "no such option: -x — what begins with a dash and is no option comes after --; see"),
    ],
)
def test_misuse_is_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(Tool, "tool", words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tool: error: ") and told in line and line.endswith(" see 'tool --help'")


@pytest.mark.parametrize(
    "line,told",
    [
        (
            "check a",
            "missing option --baseline — give it, as in: tool check new.json --baseline old.json",
        ),
        ("start", "missing argument APP — see 'tools start --help'"),
        ("start --zz x", "no such option: --zz — see 'tools start --help'"),
        ("check a b --baseline c", "unexpected argument: b — see 'tools check --help'"),
        ("chek", "no such command: chek (did you mean check?) — see 'tools --help'"),
        ("--zz", "no such option: --zz — see 'tools --help'"),
    ],
)
def test_misuse_of_a_tool_names_its_command(line: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tools(*line.split()) == 2
    assert capsys.readouterr().err == f"tools: error: {told}\n"


@pytest.mark.parametrize(
    "line,program",
    [
        ("./app -q --name y -- z", "./app -q --name y -- z"),
        ("-q -- ./app -q", "./app -q"),
        ("--name=x -- -app --help", "-app --help"),
        ("-- -- a", "-- a"),
        ("app --version --no-such -1", "app --version --no-such -1"),
    ],
)
def test_what_follows_a_programs_name_is_its_own(line: str, program: str) -> None:
    ran.clear()
    assert tools("start", *line.split()) == 7
    (command,) = ran
    assert isinstance(command, Start) and command.argv == program.split()


def test_what_the_help_says_of_an_option_may_be_made_when_it_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[str] = []

    class Late(Command, frozen=True):
        """Do nothing."""

        which: Annotated[str, Option(help=lambda: asked.append("yes") or "One of a, b.")] = ""

        def run(self) -> None: ...

    assert run_command(Late, "late", ["--which", "a"]) == 0 and not asked
    assert run_command(Late, "late", ["--help"]) == 0 and asked == ["yes"]
    assert "One of a, b." in capsys.readouterr().out


def test_help_shows_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("-h") is None
    shown = " ".join(capsys.readouterr().out.split())
    for text in (
        "tool [OPTIONS] [WORD...]",
        "Do something.",
        "Any [words], 100% plain.",
        "-n, --number NUMBER A number. [1 <= x <= 9] [default: 3]",
        "--path FILE A path. [default: x]",
        "--several, -s SEVERAL Numbers.",
        "More: --flag, --no-flag Or not. [default: --flag]",
        "--two-words Without",
        "--version",
        "Example: tool --number 3 a b",
    ):
        assert text in shown


def test_a_tool_without_a_command_shows_its_help_and_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMAPLAN_DEBUG", "")
    for words in ((), ("--debug",)):
        assert tools(*words) == 2
        shown = capsys.readouterr()
        assert "check Check a plan." in " ".join(shown.out.split())
        assert shown.err.splitlines()[-1] == "tools: error: no command given — see 'tools --help'"


def test_a_command_without_anything_to_do_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(Tool, "tool", [], no_args_is_help=True) == 2
    shown = capsys.readouterr()
    assert "Do something." in shown.out
    assert shown.err == "tool: error: nothing given — see 'tool --help'\n"


def test_debug_shows_where_an_error_comes_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMAPLAN_DEBUG", "")
    assert tools("--debug", "check", "a") == 2
    assert "Traceback" in capsys.readouterr().err
