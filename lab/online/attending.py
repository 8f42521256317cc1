"""A loop on the host for one run in a guest: what it was asked for, building it, ending it."""

import shlex
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from numaplan.common import UsageError, check_output, read_command
from numaplan.launcher import LaunchCommand, OnlineSession
from numaplan.mapper import make_policy

from ..guest.guest import Guest
from .link import Link
from .rings import Rings
from .system import GuestSystem

_OPTIONS = {"argv", "online", "plan", "settings", "budget", "overhead", "sampler", "journal", "save", "quiet"}


def read_online(text: str, inputs: Sequence[str] = ()) -> LaunchCommand:
    """What `--online` says: a policy, and options of nlaunch behind it.

    Raises UsageError for what cannot be, files that cannot be written among it, and that are `inputs`.
    """
    command, usual = (
        read_command(LaunchCommand, "nlab --online", ["--online", *words, "--", "program"])
        for words in (shlex.split(text), ["numaplan"])
    )
    for field in msgspec.structs.fields(command):
        if field.name not in _OPTIONS and getattr(command, field.name) != getattr(usual, field.name):
            raise UsageError(
                f"--online {text!r}: --{field.name.replace('_', '-')} is not for a loop on the host",
                "run nlaunch in the guest: nlab run -- nlaunch --online POLICY … APP",
            )
    if command.sampler not in ("auto", "lab"):
        raise UsageError(f"--online {text!r}: --sampler {command.sampler} is not in the lab", "leave it out")
    for path in filter(None, (command.journal, command.save)):
        check_output(path, inputs)
    make_policy(command.online, command.online_options().settings)
    return command


@contextmanager
def attending(
    command: LaunchCommand, guest: Guest, planned: Sequence[frozenset[int]]
) -> Iterator[OnlineSession]:
    """Attend what runs in the guest meanwhile. planned: masks that a plan gave."""
    stop = threading.Event()
    system = GuestSystem(Link(guest.online_port, stop), Rings(guest.folder))
    session = OnlineSession(
        command.online_options(), guest.shape.machine, (), planned, system=system, sampler=system
    )
    session.start(lambda: [1])
    try:
        yield session
    finally:
        stop.set()
        session.stop(restore=False)
