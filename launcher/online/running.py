"""Refine a program that we start, or processes that run already."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from numaplan.common import (
    ASKING,
    NumaplanError,
    UsageError,
    fail,
    find_program,
    interruptible,
    run_program,
    uninterrupted,
)
from numaplan.machine import Machine
from numaplan.profiler import of_no_other, prepare

from ..enforce.folder import launch_folder
from ..process import procfs
from .options import OnlineOptions
from .session import OnlineSession


def launch_online(options: OnlineOptions, argv: Sequence[str]) -> int:
    """Run a program without a plan and refine its placement; returns its exit code.

    Raises UsageError or MachineLacksError before the program starts.
    """
    find_program(argv)
    # What we start is watched with us, from its first instruction.
    session = OnlineSession(options, Machine.load("local"), [os.getpid()])
    with launch_folder({}) as workdir:
        environment = prepare(workdir, os.environ) if options.save else of_no_other(os.environ)
        try:
            code = run_program(
                argv,
                environment,
                started=lambda pid: session.start(lambda: [pid]),
                pass_interrupts=True,
            )
        finally:
            session.stop(restore=False)
        try:
            session.save(argv, workdir)
        except (NumaplanError, MemoryError) as error:
            # The program's own: it ran, whatever comes of its placement.
            return fail("nlaunch", str(error) or "not enough memory to save what was refined", code)
    return code


def attach_online(options: OnlineOptions, pids: Sequence[int]) -> int:
    """Refine running processes until they end or Ctrl-C; then their threads get their first masks back.

    Raises UsageError for processes that are not there or belong to others.
    """
    check_owners(pids)
    return _attach(options, pids, lambda: pids)


def attach_to_all(options: OnlineOptions) -> int:
    """The same for all processes of this user, also those to come, but ourselves and our ancestors."""
    return _attach(options, processes_to_refine(), processes_to_refine)


def _attach(options: OnlineOptions, now: Sequence[int], roots: Callable[[], Sequence[int]]) -> int:
    with interruptible(*ASKING) as received:
        session = OnlineSession(options, Machine.load("local"), now, live=True)
        with suppress(KeyboardInterrupt):
            session.start(roots)
            session.wait()
        # A thread that is not given its mask back now stays bound.
        with suppress(KeyboardInterrupt), uninterrupted():
            session.stop(restore=True)
    return 128 + received[-1] if received else 0


def check_owners(pids: Sequence[int]) -> None:
    """Raises UsageError unless these processes run and are ours to move (root may name any)."""
    for pid in pids:
        user = procfs.owner(pid)
        if user is None or not procfs.is_alive(pid):
            raise UsageError(f"no process {pid}", "give the id of a running process")
        if os.geteuid() not in (0, user):
            raise UsageError(f"process {pid} belongs to another user", "only your own can be refined")


def processes_to_refine() -> list[int]:
    """All processes of this user but ourselves and those that we descend from."""
    ours = {os.getpid()}
    pid = os.getpid()
    while (parent := procfs.parent_of(pid)) > 1:
        ours.add(parent)
        pid = parent
    return [pid for pid in procfs.processes_of(os.geteuid()) if pid not in ours]
