"""The frame every command runs in: one-line errors, exit codes, `--debug`, `--version`.

A command module makes its Typer with `new_app`, and its entry point calls `run_app`. Nothing but `frame.py`
turns an exception into an exit code.
"""

import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from numaplan.common.frame import INTERRUPTED, fail, run_framed
from numaplan.common.plain_values import read_plainly
from numaplan.common.version import version


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"numaplan {version()}")
        raise typer.Exit


def _set_debug(wanted: bool) -> bool:
    if wanted:
        os.environ["NUMAPLAN_DEBUG"] = "1"
    return wanted


Debug = Annotated[
    bool, typer.Option("--debug", callback=_set_debug, is_eager=True, help="Show the traceback of an error.")
]
Version = Annotated[
    bool,
    typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]

# For commands that end in a program's own command line: everything after it is the program's.
PASS_THROUGH = {"allow_interspersed_args": False, "ignore_unknown_options": False}

_EXAMPLE = "Example: "  # how the last line of every command's help begins
_STYLE: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


def new_command(function: Callable[..., Any], **settings: Any) -> typer.Typer:
    """A Typer of a single command, in the same style; `settings` are those of `Typer.command`."""
    app = typer.Typer(**_STYLE)
    app.command(**settings)(function)
    return app


def new_app(help_text: str) -> typer.Typer:
    """A Typer with the conventions of all our commands (`--debug`, `--version`, no completion options)."""
    app = typer.Typer(help=help_text, no_args_is_help=True, **_STYLE)

    @app.callback()
    def options(debug: Debug = False, version: Version = False) -> None:
        pass

    return app


def run_app(app: typer.Typer, prog: str, args: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; errors become one line on stderr.

    args: the words after the program's name (default: those of this process).
    """

    def call() -> Any:
        try:
            command = typer.main.get_command(app)
            read_plainly(command)
            return command(args=args, prog_name=prog, standalone_mode=False)
        except TyperException as error:
            told = error.format_message().rstrip(".") or "no command given"
            return fail(prog, f"{told} — {_advice(error, prog)}", 2)
        except typer.Abort:
            return fail(prog, "interrupted", INTERRUPTED)

    return run_framed(call, prog)


def _advice(error: TyperException, prog: str) -> str:
    """The example of the command in question where something is missing, else where to read about it."""
    context = getattr(error, "ctx", None)
    if context is None:
        return f"see '{prog} --help'"
    _, found, example = (context.command.help or "").partition(_EXAMPLE)
    if found and type(error).__name__ == "MissingParameter":
        return f"give it, as in: {example.partition(chr(10))[0]}"
    return f"see '{context.command_path} --help'"
