"""How long a recording will take, by a native run."""

from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.profiler.recording.estimate import Estimate, estimate, judged


def test_emulated_threads_take_turns() -> None:
    one, four = judged(2.0, 2.0, "emulate"), judged(2.0, 8.0, "emulate")
    assert one.least == pytest.approx(31) and one.most == pytest.approx(181)
    assert four.least > 3 * one.least
    asleep = judged(10.0, 0.1, "emulate")
    assert 10 < asleep.least < asleep.most < 21


def test_perf_takes_little_more_than_the_program() -> None:
    found = judged(2.0, 8.0, "faults")
    assert 2.0 <= found.least < found.most < 4.0


@pytest.mark.parametrize(
    ("least", "most", "shown"), [(31.4, 181, "31-180 s"), (2.04, 3.1, "2-3.1 s"), (600, 3600, "10-60 min")]
)
def test_what_is_said(least: float, most: float, shown: str) -> None:
    assert Estimate(1.0, least, most).span == shown


def test_a_native_run_is_measured_and_must_succeed() -> None:
    found = estimate(["true"], "emulate")
    assert 0 < found.seconds < found.least <= found.most
    with pytest.raises(UsageError, match="ended with 1 without input"):
        estimate(["false"], "emulate")
    with pytest.raises(UsageError, match="sh was ended by SIGSEGV without input"):
        estimate(["sh", "-c", "kill -SEGV $$"], "emulate")


def test_a_script_without_an_interpreter_runs_as_it_will_be_recorded(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo hello\n")
    script.chmod(0o755)
    assert estimate([str(script)], "emulate").seconds > 0
