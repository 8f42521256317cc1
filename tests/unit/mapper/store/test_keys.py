"""Which runs share a plan: builds, classes, and the shapes of command lines."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.mapper.commands.main import main
from numaplan.mapper.store.keys import program_key, read_class, threads_of
from numaplan.mapper.store.program_files import identity_of
from numaplan.mapper.store.putting import parts_for
from numaplan.mapper.store.words import read_words, shape_of
from tests.support.stores import small_plan

TRUE = shutil.which("true") or "/bin/true"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shape(line: str) -> str:
    return shape_of(read_words(line.split()))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/opt/app 4 512x512 1e-6 2.5G", "app # # # #"),
        ("./app -n 100 -n100 --size=1e6", "app -n # -n# --size=#"),
        ("./app in.dat ../x out/y fast", "app PATH fast"),
        ("./app --in=/a/b -f", "app --in=PATH -f"),
        ("./app sha256 -O", "app sha256 -O"),
        # How many threads there will be is no size: it stays.
        ("./app -t 8 --threads=4 --nthreads 2 -j8", "app -t 8 --threads=4 --nthreads 2 -j8"),
        ("mpirun -n 4 --oversubscribe ./gone 100", "mpirun -n 4 --oversubscribe PATH 100"),
        ("python3 -m http.server 80", "python3 -m http.server #"),
        ("python3 -c import/x 7", "python3 -c import/x #"),
    ],
)
def test_shapes(line: str, expected: str) -> None:
    assert shape(line) == expected


def test_scripts_of_one_interpreter_are_builds_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)")
    (tmp_path / "b.py").write_text("print(2)")
    interpreter = shutil.which("python3")
    assert interpreter
    a, b = (program_key([interpreter, f"{name}.py", "3"], {}) for name in "ab")
    assert a.build != b.build
    assert a.build.split("+")[0] == b.build.split("+")[0]
    code = [program_key([interpreter, "-c", text], {}).build for text in ("1", "2/3", "print")]
    assert len({a.build, *code}) == 4
    (tmp_path / "a.py").write_text("print(3)")
    assert program_key([interpreter, "a.py", "3"], {}).build != a.build
    for name in ("one", "two"):  # by name no scripts
        (tmp_path / name).write_text(name)
    assert program_key(["sh", "one"], {}).build != program_key(["sh", "two"], {}).build


def test_what_a_wrapper_starts_belongs_to_the_build(tmp_path: Path) -> None:
    for name, text in (("one", "#!/bin/sh\n"), ("two", "#!/bin/sh\ntrue\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    keys = [program_key(["env", "X=1", f"./{name}"], {}) for name in ("one", "two")]
    assert keys[0].build != keys[1].build and keys[0].run.shape != keys[1].run.shape
    assert program_key(["env", "true"], {}).build != program_key(["env", "sort"], {}).build
    direct = program_key(["./one"], {})
    assert direct.build.split("+")[0] == identity_of(os.path.realpath("/bin/sh"))


def test_data_files_do_not_belong_to_it(tmp_path: Path) -> None:
    (tmp_path / "a.in").write_text("1")
    (tmp_path / "b.in").write_text("2")
    assert program_key([TRUE, "a.in"], {}) == program_key([TRUE, "b.in"], {})


def test_a_program_without_a_build_id_goes_by_its_content(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    plain.write_bytes(bytes(head))
    plain.chmod(0o755)
    first = program_key(["./plain"], {}).build
    assert first.startswith("file-")
    plain.write_bytes(bytes(head) + b"x")
    assert program_key(["./plain"], {}).build != first


def test_a_pipe_among_the_arguments_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.sh")
    assert stat.S_ISFIFO((tmp_path / "pipe.sh").stat().st_mode)
    assert program_key([TRUE, "pipe.sh"], {}).run.shape == "true PATH"


def test_huge_command_lines_are_cut() -> None:
    assert len(shape_of(read_words(["app", "x" * 10_000_000, *["word"] * 100_000]))) < 5000


def test_a_number_of_threads_that_no_run_is_told_to_have() -> None:
    """Of such a plan nlaunch would find nothing."""
    parts, key = parts_for(small_plan(build=""), [TRUE], {}, threads=1 << 20)
    assert read_class(parts[2]) == (1, 1 << 20, key.run.digest)
    with pytest.raises(UsageError, match=r"^--threads 99999999999"):
        parts_for(small_plan(build=""), [TRUE], {}, threads=99_999_999_999)


def test_names_of_classes() -> None:
    key = program_key([TRUE, "3"], {"OMP_NUM_THREADS": "8,2"})
    assert key.run.file == f"r1-t8-{key.run.digest}"
    assert read_class(key.run.file) == (1, 8, key.run.digest)
    job = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
    assert program_key([TRUE], job).run.file.startswith("r4-tany-")
    assert program_key([TRUE], {}, "night-run").run.file == "night-run"
    assert read_class("night-run") is None
    for bad in ("../x", "a/b", ".hidden", "a" * 10_000_000):
        with pytest.raises(UsageError, match=r"^--class"):
            program_key([TRUE], {}, bad)
        with pytest.raises(UsageError, match=r"^--class"):
            parts_for(small_plan(), [TRUE], {}, bad)


@pytest.mark.parametrize(
    ("environment", "threads"),
    [
        ({}, 0),
        ({"OMP_NUM_THREADS": "16"}, 16),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OMP_NUM_THREADS": "many", "GOMAXPROCS": "2"}, 2),
        ({"OMP_NUM_THREADS": "9" * 5000}, 0),
    ],
)
def test_threads_known_beforehand(environment: dict[str, str], threads: int) -> None:
    assert threads_of(environment) == threads


def test_no_age_is_no_age_below_the_least(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "drop", "--help"]) == 0
    assert "--older-than DAYS" in (said := " ".join(capsys.readouterr().out.split())) and "-1" not in said
    assert main(["store", "drop"]) == 2
