"""What `nlab doctor` finds."""

from pathlib import Path

import pytest

from numaplan.lab.setup.doctor import NETWORK, SOCKETS, diagnose


def test_a_kernel_that_is_not_there_lacks_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has none yet was told that it had been set up without this and that."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = {check.name: check for check in diagnose().checks}
    assert not found["kernel"].ok
    for name in (SOCKETS, NETWORK):
        assert not found[name].ok and found[name].hint == "nlab setup"
        assert found[name].found == "there is no kernel that can be used yet"


def test_a_cache_that_cannot_be_read_has_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user's, where HOME is still theirs: it was an internal error."""
    monkeypatch.setenv("XDG_CACHE_HOME", f"/{'x' * 300}")
    assert not {check.name: check for check in diagnose().checks}["kernel"].ok
