"""Programs in the lab: what is compiled for it, and guests that many tests run programs in."""

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from numaplan.lab.guest.control import QemuFaultError
from numaplan.lab.guest.guest import Guest
from numaplan.lab.guest.job import Job
from numaplan.lab.runs.session import Request, Session
from numaplan.launcher.enforce.next_touch import include_folder
from tests.support.programs import EXAMPLES, PROGRAMS, compiled

FLAGS = ("-std=gnu11", "-g", "-D_GNU_SOURCE", f"-I{include_folder()}", "-lpthread")


def guest_program(name: str, *flags: str) -> Path:
    """One of programs/lab, of its other folders (`launcher/policy`) or of the examples.

    flags: may say how far to optimise it.
    """
    sources = (folder / f"{name}.c" for folder in (PROGRAMS / "lab", PROGRAMS, EXAMPLES))
    return compiled(next(source for source in sources if source.exists()), flags=("-O2", *flags, *FLAGS))


def silent(_text: str) -> None:
    """Told what happens, and says nothing."""


class SharedGuest:
    """A booted machine that runs what each test wants, as `nlab run` does; another is booted if it hangs."""

    def __init__(self, booted: Session) -> None:
        self._booted = booted

    def run(
        self, *command: object, config: str = "default", stdout: int = -1, stderr: int = -1, **more: Any
    ) -> dict[str, Any]:
        """The result of a command as `nlab run --json --by-thread` prints it; more: of the request."""
        words = [str(word) for word in command]
        request = Request(words, self._booted.request.machine, **{"by_thread": True, **more})
        with tempfile.TemporaryDirectory() as folder:
            session = Session(self._booted.guest.shape, request, Path(folder), silent)
            try:
                session.guest = self._booted.guest
                result = session.run(config, stdout=stdout, stderr=stderr)
            except QemuFaultError:  # a fault of QEMU, as for `nlab compare`
                self._booted.reboot()
                session.guest = self._booted.guest
                result = session.run(config, stdout=stdout, stderr=stderr)
        content: dict[str, Any] = msgspec.to_builtins(result)
        return content

    def said(self, *command: object, **more: Any) -> tuple[str, dict[str, Any]]:
        """What a command wrote, and its result."""
        with tempfile.TemporaryFile() as output:
            result = self.run(*command, stdout=output.fileno(), stderr=output.fileno(), **more)
            output.seek(0)
            return output.read().decode(), result


def said_uncounted(guest: Guest, argv: list[str], environment: dict[str, str] | None = None) -> str:
    """What a command wrote in a guest without the counting plugin; it must succeed."""
    with tempfile.TemporaryFile() as output:
        job = Job(argv[0], argv, {**os.environ, **(environment or {})}, os.getcwd(), timeout=600)  # noqa: PTH109
        outcome = guest.run(job, -1, output.fileno(), output.fileno())
        output.seek(0)
        text = output.read().decode()
    assert outcome.exit_code == 0, text
    return text
