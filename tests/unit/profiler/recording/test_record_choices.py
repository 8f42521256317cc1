"""The options of `nprof record`, and what it says after the run."""

from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.profiler.backends.base import PerfChoices
from numaplan.profiler.commands.record import RecordCommand
from numaplan.profiler.recording.outcome import too_few, wanted_samples
from numaplan.profiler.recording.record import RecordOptions, check_target
from tests.support.commands import one_line_error, run


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 10.0), ("1.5s", 1.5), ("500ms", 0.5), ("2m", 120.0), ("1h", 3600.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert RecordCommand(duration=text).choices().duration == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "size"), [("1M", 1 << 20), ("64m", 64 << 20), ("2GB", 2 << 30), ("1048576", 1 << 20)]
)
def test_sizes(text: str, size: int) -> None:
    assert RecordCommand(max_size=text).choices().max_bytes == size


def test_processes() -> None:
    assert RecordCommand(pids=["1,2", "3"]).choices().pids == (1, 2, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"duration": "0"},
        {"duration": "-1"},
        {"duration": "soon"},
        {"duration": "1e9"},
        {"duration": "999999999h"},
        {"max_size": "1K"},
        {"max_size": "999999999999T"},
        {"max_size": "x"},
        {"pids": ["x"]},
        {"pids": ["0"]},
        {"pids": ["1,"]},
        {"pids": ["99999999"]},
        {"pids": ["²"]},
        {"events": ["-o"]},
        {"events": [""]},
    ],
)
def test_wrong_options_are_named(wrong: dict[str, object]) -> None:
    option = {"pids": "--pid", "max_size": "--max-size"}.get(next(iter(wrong)), f"--{next(iter(wrong))}")
    with pytest.raises(UsageError, match=option):
        RecordCommand(**wrong).choices()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("--machine", {"machine": "4x2"}),
        ("--no-cache", {"cache": False}),
        ("--for-footprint", {"for_footprint": "1G"}),
    ],
)
@pytest.mark.parametrize("backend", ["faults", "pebs"])
def test_what_is_real_is_not_modelled(option: str, given: dict[str, object], backend: str) -> None:
    command = RecordCommand(argv=["true"], backend=backend, **given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=f"{option} with {backend}"):
        command.run()


@pytest.mark.parametrize("words", [["--machine", "4x2"], ["--no-cache"]])
def test_what_is_modelled_is_emulated(words: list[str]) -> None:
    """Where a sampler or hint faults work, `auto` takes those, whose accesses are not of that machine."""
    said = one_line_error(run("nprof", "record", *words, "--duration", "1s", "--", "true"), "nprof", 2)
    assert "--duration: emulation cannot do this" in said


@pytest.mark.parametrize(
    ("argv", "choices", "problem"),
    [
        ([], PerfChoices(), "no program"),
        (["true"], PerfChoices(pids=(1,)), "--pid and a program"),
        ([], PerfChoices(pids=(1,), all_cpus=True), "--pid and --all-cpus"),
    ],
)
def test_one_thing_is_recorded(argv: list[str], choices: PerfChoices, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        check_target(argv, RecordOptions(choices=choices))


def test_wanted_samples_grow_with_the_threads() -> None:
    counts = [wanted_samples(threads) for threads in (1, 2, 32, 64, 320)]
    assert counts == [0, 100_000, 100_000, 200_000, 1_000_000]


@pytest.mark.parametrize(
    ("samples", "threads", "meta", "advice"),
    [
        (100_000, 32, {"period": "1000"}, ""),
        (10, 1, {"period": "1000"}, ""),
        (10_000, 4, {"period": "1000"}, "--period 100"),
        (51_234, 32, {"period": "1000"}, "--period 510"),
        (2_000, 4, {"period": "1000"}, "--period 20"),
        (50, 4, {"period": "1000"}, "longer run with --period 1"),
        (50, 4, {"period": "1"}, "a longer run"),
        (50, 4, {}, "a longer run"),
        (1_000, 4, {"freq": "99", "period": "0"}, "--freq 9901"),
        (1_000, 4, {"backend": "faults", "period": "1"}, "nprof doctor"),
    ],
)
def test_a_warning_says_what_would_give_enough(
    samples: int, threads: int, meta: dict[str, str], advice: str
) -> None:
    warning = too_few(samples, threads, meta)
    assert bool(warning) == bool(advice)
    assert warning.endswith(advice) or advice in warning


@pytest.mark.parametrize("samples", [317, 4_021, 99_999])
def test_the_period_advised_gives_enough(samples: int) -> None:
    period = int(too_few(samples, 8, {"period": "1000"}).rpartition(" ")[2])
    assert samples * 1000 // period >= 100_000


def test_our_options_behind_the_program_are_told() -> None:
    (note,) = RecordCommand(argv=["../app", "8", "-o", "foo.db"]).misplaced()
    assert "-o foo.db comes after the program" in note
    assert len(RecordCommand(argv=["app", "--output", "a/b.db", "--backend", "faults"]).misplaced()) == 2
    for argv in (["-o", "foo.db"], ["cc", "-o", "foo.o"], ["app", "--backend", "gtk"], ["app", "-o"], []):
        assert not RecordCommand(argv=argv).misplaced()
    assert not RecordCommand(argv=["app", "-o", "foo.db"], output=Path("own.db")).misplaced()


@pytest.mark.parametrize("word", ["--output=foo.db", "-ofoo.db", "--backend=emulate"])
def test_our_options_with_their_values_behind_the_program_are_told(word: str) -> None:
    (note,) = RecordCommand(argv=["./app", "8", word, "9"]).misplaced()
    assert note.startswith(f"note: {word} comes after the program")
    assert not RecordCommand(argv=["./app", word.replace(".db", ".o").replace("emulate", "gtk")]).misplaced()
    own = {"output": Path("own.db"), "backend": "faults"}
    assert not RecordCommand(argv=["./app", word], **own).misplaced()  # type: ignore[arg-type]
