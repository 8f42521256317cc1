"""Which perf can be used for recording: by the version that it tells."""

from pathlib import Path

import pytest

from numaplan.common import MachineLacksError
from numaplan.profiler.backends.perf.command import recording_perf


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> str:
    perf = folder / "perf"
    perf.write_text(f"#!/bin/sh\n{script}\n")
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return str(perf)


@pytest.mark.parametrize("version", ["5.10.0", "5.15.167", "6.1.112", "6.17.rc1.g1234", "10.0", "unknown"])
def test_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    perf = installed(tmp_path, monkeypatch, f"echo perf version {version}")
    assert recording_perf() == perf


@pytest.mark.parametrize("version", ["4.19.1", "5.4.257", "5.9"])
def test_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    installed(tmp_path, monkeypatch, f"echo perf version {version}")
    with pytest.raises(MachineLacksError, match="too old") as caught:
        recording_perf()
    assert "5.10" in caught.value.hint


def test_a_wrapper_that_finds_no_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, "echo 'WARNING: perf not found for kernel 9.9' >&2; exit 2")
    with pytest.raises(MachineLacksError, match=r"not found for kernel 9\.9"):
        recording_perf()


def test_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineLacksError, match="not installed"):
        recording_perf()
