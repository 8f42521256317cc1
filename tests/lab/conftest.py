"""Fixtures of the lab's tests: QEMU and a kernel, fetched if they can be; guests that are booted once."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from numaplan.common import NumaplanError
from numaplan.lab.guest.guest import Guest
from numaplan.lab.guest.shape import shape_guest
from numaplan.lab.runs.session import Request, open_session
from numaplan.lab.setup.doctor import NETWORK, SOCKETS, diagnose
from numaplan.lab.setup.fetch import set_up
from numaplan.machine import Machine
from tests.support.guests import SharedGuest, silent


@pytest.fixture(scope="session")
def lab() -> Path:
    """The folder of our commands, the lab being ready; skips where it cannot be made so."""
    if not diagnose().ok:
        try:
            set_up([], False, print)
        except NumaplanError as error:
            print(error)
    if lacking := [
        check for check in diagnose().checks if not check.ok and check.name not in (SOCKETS, NETWORK)
    ]:
        pytest.skip(f"the lab cannot run here: {lacking[0].name}: {lacking[0].found}")
    return Path(sys.executable).parent


@pytest.fixture(scope="session")
def guests(lab: Path) -> Iterator[Callable[[str], SharedGuest]]:  # noqa: ARG001
    """The guest of a machine, booted when it is first asked for."""
    booted: dict[str, SharedGuest] = {}
    with ExitStack() as stack:

        def of(machine: str) -> SharedGuest:
            if machine not in booted:
                session = stack.enter_context(open_session(Request(["/bin/true"], machine), silent))
                booted[machine] = SharedGuest(session)
            return booted[machine]

        yield of


@pytest.fixture(scope="session")
def four_nodes(guests: Callable[[str], SharedGuest]) -> SharedGuest:
    """Four nodes of two cpus."""
    return guests("4x2")


@pytest.fixture(scope="session")
def two_nodes(guests: Callable[[str], SharedGuest]) -> SharedGuest:
    """Two nodes of two cpus."""
    return guests("2x2")


@pytest.fixture(scope="session")
def uncounted(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:  # noqa: ARG001
    """Two nodes of two cpus and 320 MiB each; nothing is counted, so it is quick."""
    shape = shape_guest(Machine.load("2x2"), 640, 1 << 20)
    with Guest(shape, tmp_path_factory.mktemp("guest"), counted=False) as booted:
        yield booted
