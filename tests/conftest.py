"""Fixtures for all tests; how properties are tried; which tests run side by side."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent
# Of the lab: what boots guests of its own only.
OWN_GUESTS = ("test_cluster.py", "test_caches.py", "test_dead_guest.py", "test_recording.py")
# No test asserts a time: a property's examples have no deadline. `make test` tries the same ones every time,
# `make fuzz` draws new ones, and many.
UNTIMED = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("test", derandomize=True, **UNTIMED)
settings.register_profile("fuzz", max_examples=2000, **UNTIMED)
settings.load_profile("test")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a background job; programs would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests go to one worker, which builds once what they share; so do all that share guests."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "lab" if file.startswith("tests/lab/") and not file.endswith(OWN_GUESTS) else file

    return ByFile(config, log)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_fixtures() -> Path:
    """The development fixtures beside the checkout; skips where they are absent."""
    place = Path(os.environ.get("NUMAPLAN_FIXTURES", REPOSITORY.parent / "shared" / "fixtures"))
    if not place.is_dir():
        pytest.skip(f"development fixtures are not here ({place})")
    return place
