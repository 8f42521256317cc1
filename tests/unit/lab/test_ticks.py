"""The rate of the time-stamp counter, by which a guest's seconds are ours."""

import platform
import re

import pytest

from numaplan.lab.guest.qemu import host_tick_khz, kernel_options


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the counter of x86-64")
def test_two_measurements_agree() -> None:
    """Within what a kernel corrects by itself (1 %), and within what processors have."""
    first = host_tick_khz()
    told = re.search(r"tsc_early_khz=(\d+)", kernel_options())
    assert first is not None and told is not None
    assert abs(first / int(told[1]) - 1) < 0.01
    assert 500_000 < first < 10_000_000


def test_elsewhere_the_guest_finds_out_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert host_tick_khz() is None
    assert "tsc_early_khz" not in kernel_options()
