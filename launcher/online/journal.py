"""The journal: one JSON object a line for each interval with its actions, written as it happens."""

from collections.abc import Sequence
from typing import IO, Any

import msgspec
import numpy as np

from numaplan.common import UsageError
from numaplan.launcher.online.acting import Done
from numaplan.launcher.online.actions import MoveThread


class Journal:
    """Appends to a file; a disk that is full ends the journal, not the loop (`problem` then says why)."""

    def __init__(self, path: str) -> None:
        """Raises UsageError when the file cannot be written; with "" nothing is written."""
        self.problem = ""
        self._file: IO[bytes] | None = None
        if path:
            try:
                self._file = open(path, "ab")  # noqa: PTH123, SIM115  # closed by close()
            except OSError as error:
                mend = "name a file that can be written"
                raise UsageError(f"--journal {path}: {error.strerror}", mend) from error

    def write(self, **entry: Any) -> None:
        """One line; numbers that are not known become null."""
        if self._file is None:
            return
        try:
            self._file.write(msgspec.json.encode(entry, enc_hook=_plain) + b"\n")
            self._file.flush()
        except OSError as error:
            self.problem = error.strerror or "it cannot be written"
            self.close()

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self.problem = self.problem or error.strerror or "it cannot be written"


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's, which the encoder takes."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} in the journal")


def action_entries(done: Sequence[Done]) -> list[dict[str, Any]]:
    """What was done, for the journal."""
    return [_entry(one) for one in done]


def _entry(one: Done) -> dict[str, Any]:
    action = one.action
    if isinstance(action, MoveThread):
        entry = {
            "move": "thread",
            "tid": action.tid,
            "node": action.node,
            "cpu": action.cpu,
            "partner": action.partner,
        }
    else:
        entry = {"move": "pages", "pid": action.pid, "node": action.node, "pages": len(action.pages)}
    return {
        **entry,
        "moved": one.moved,
        "reason": action.reason,
        **({"problem": one.problem} if one.problem else {}),
    }
