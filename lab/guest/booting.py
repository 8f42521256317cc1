"""Booting a guest, and another one where it fails meanwhile."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from .control import QemuFaultError
from .guest import Guest

AGAIN = "the virtual machine has failed, most likely by a bug in QEMU: booting another"
BOOTS = 3  # after so many the fault is not one of chance


def boot(stack: ExitStack, made: Callable[[Path], Guest], folder: Path, say: Callable[[str], None]) -> Guest:
    """A booted guest, which ends with the stack; made: with its files in the folder that is given.

    Raises QemuFaultError when all of some tries fail so.
    """
    for left in reversed(range(BOOTS)):
        own = Path(tempfile.mkdtemp(prefix="guest-", dir=folder.resolve()))
        try:
            return stack.enter_context(made(own))
        except QemuFaultError:
            if not left:
                raise
            say(AGAIN)
    raise AssertionError("unreachable")
