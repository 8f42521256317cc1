"""The errors that a user may see, and the exit code of each.

Every error is one line, `tool: error: what — what to do`. Raise one of these with both halves; anything
else that reaches the command frame is a bug of numaplan and is reported as such.
"""


class NumaplanError(Exception):
    """Base of every error that is told to the user in one line.

    what: what is wrong, naming the file, offset, option or thread; hint: what the user can do about it.
    """

    exit_code = 2

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.what} — {self.hint}" if self.hint else self.what
        return " ".join(text.split())


class UsageError(NumaplanError):
    """Misuse or bad input (exit code 2)."""


class NotSoError(NumaplanError):
    """The thing asked about is not so: a check failed, a placement was not applied (exit code 1)."""

    exit_code = 1


class MachineLacksError(NumaplanError):
    """The machine lacks something; `hint` says which command or setting gets it (exit code 3)."""

    exit_code = 3
