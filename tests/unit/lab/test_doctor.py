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
