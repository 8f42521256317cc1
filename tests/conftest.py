"""Fixtures for all tests."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parent.parent
settings.register_profile("untimed", deadline=None)  # no test asserts a time, on a crowded machine least
settings.load_profile("untimed")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a background job; programs would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
