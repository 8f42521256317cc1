"""What ranks leave of their messages is checked, and which MPI a job uses is told by what there is."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from numaplan.common import UsageError
from numaplan.profiler.identity import rank
from numaplan.profiler.identity.records import Identity, ModuleRecord, ProcessRecord
from numaplan.profiler.messages.implementation import MPICH, OPEN_MPI, implementation_of
from numaplan.profiler.messages.library import _KINDS, Library
from numaplan.profiler.messages.linking import uses_intercommunicators
from numaplan.profiler.messages.message import Messages
from numaplan.profiler.messages.monitoring import Monitoring
from numaplan.profiler.messages.recording import read_messages, way_of

LIBRARY = Library(Path("/cache/numaplan_messages.so"))


def module(process: str, name: str = "libmpi.so.40") -> ModuleRecord:
    return ModuleRecord(process, 7, f"/usr/lib/{name}", "", 0, False, (), 0, -1)


def test_rows_of_monitoring(tmp_path: Path) -> None:
    (tmp_path / "rank.1.prof").write_text(
        "# POINT TO POINT\nE\t1\t2\t10000 bytes\t10 msgs sent\t4,0,0\nI\t1\t0\t8140 bytes\t25 msgs sent\n"
        "# OSC\nS\t1\t0\t777 bytes\t1 msgs sent\nR\t1\t3\t333 bytes\t1 msgs sent\n"
        "# COLLECTIVES\nC\t1\t0\t9 bytes\t9 msgs sent\n"
        "E\t2\t1\t5 bytes\t1 msgs sent\nE\t1\t99999999\t5 bytes\t1 msgs sent\n"
        "E\t1\t2\t-5 bytes\t1 msgs sent\n"
        "E\t1\t2\t9999999999999999999 bytes\t1 msgs sent\nE\t1\n\xff\n",
        encoding="latin-1",
    )
    (tmp_path / "rank.77777777.prof").write_text("E\t77777777\t1\t5 bytes\t1 msgs sent\n")
    (tmp_path / "another").write_text("E\t0\t1\t5 bytes\t1 msgs sent\n")
    found = Monitoring().read(tmp_path)
    assert found.ranks == {1}
    assert found.messages == [
        Messages(1, 2, "sent", 10000, 10),
        Messages(1, 0, "collective", 8140, 25),
        Messages(1, 0, "put", 777, 1),
        Messages(1, 3, "get", 333, 1),
    ]


def table(
    rank: int, entries: list[tuple[int, int, int]], capacity: int = 4, version: int = 1, ranks: int = 8
) -> bytes:
    rows = np.zeros((capacity, 3), np.uint64)
    rows[: len(entries)] = np.array(entries, np.uint64).reshape(-1, 3)
    head = np.array([version, capacity, rank, ranks, 4711, 0], "<u4").tobytes()
    return b"NUMAPLMS" + head + np.array([2, 3, 0, 0], "<u8").tobytes() + rows.tobytes()


def key(kind: int, peer: int, tid: int) -> int:
    return 1 << 63 | kind << 56 | peer << 32 | tid


def test_rows_of_the_library(tmp_path: Path) -> None:
    entries = [
        (key(0, 5, 12), 640, 10),
        (key(3, 1, 12), 64, 1),
        (key(9, 1, 12), 1, 1),
        (key(1, 2, 3), 1 << 63, 1),
    ]
    (tmp_path / "3.4711.messages").write_bytes(table(3, entries))
    for number, content in enumerate(
        [
            b"",
            b"NUMAPLMS",
            table(1, [], version=2),
            table(1 << 24, []),
            table(1, [])[:-1],
            table(1, []) + b"x",
        ]
    ):
        (tmp_path / f"{number}.1.messages").write_bytes(content)
    found = LIBRARY.read(tmp_path)
    assert found.ranks == {3}
    assert found.messages == [
        Messages(3, 5, "sent", 640, 10, 4711, 12),
        Messages(3, 1, "modelled", 64, 1, 4711, 12),
    ]
    assert [warning.split()[0] for warning in found.warnings] == ["2", "3"]


def test_ranks_that_use_mpi_and_left_nothing_are_told(tmp_path: Path) -> None:
    (tmp_path / "rank.1.prof").write_text("")
    modules = (
        module("r0"),
        module("r1"),
        module("r2"),
        module("r2.1"),
        module("r3", "libc.so.6"),
        module("p0"),
    )
    warnings = read_messages(Monitoring(), tmp_path, Identity(modules=modules)).warnings
    assert warnings == (f"no messages of ranks 0, 2: {Monitoring.why_none}",)
    assert not read_messages(Monitoring(), tmp_path, Identity(modules=modules[1:2])).warnings


@pytest.mark.parametrize(
    ("rank", "size", "known"), [(0, 1, False), (3, 1, False), (0, 8, True), (0, 0, True)]
)
def test_ranks_that_are_each_alone_in_mpi_are_told(
    tmp_path: Path, rank: int, size: int, *, known: bool
) -> None:
    """As by srun without the --mpi that they need: each says that it is the first of one."""
    (tmp_path / "0.4711.messages").write_bytes(table(0, [(key(0, 0, 12), 64, 1)], ranks=max(size, 1)))
    process = ProcessRecord(f"r{rank}", 4711, "", ("app",), "/app", "", 0, -1)
    identity = Identity(processes=(process,), modules=(module(f"r{rank}"),))
    found = read_messages(LIBRARY, tmp_path, identity, 8 if size else 0)
    assert bool(found.ranks) == bool(found.messages) == known
    assert ("each rank is alone in MPI" in " ".join(found.warnings)) != known


def test_a_path_that_cannot_be_preloaded_gets_another(tmp_path: Path) -> None:
    environment = {"LD_PRELOAD": "/a/preload.so"}
    assert LIBRARY.environment(tmp_path, environment) == {
        "LD_PRELOAD": "/a/preload.so:/cache/numaplan_messages.so",
        "NUMAPLAN_MESSAGES": str(tmp_path),
    }
    odd = Library(Path("/my cache/numaplan_messages.so")).environment(tmp_path, {})["LD_PRELOAD"]
    assert odd == str(tmp_path / "numaplan_messages.so")
    assert (tmp_path / "numaplan_messages.so").readlink() == Path("/my cache/numaplan_messages.so")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, ""), ({"OMPI_COMM_WORLD_RANK": "0"}, OPEN_MPI), ({"MPI_LOCALRANKID": "0", "PMI_RANK": "1"}, MPICH)],
)
def test_the_mpi_of_a_rank(environment: dict[str, str], expected: str) -> None:
    assert implementation_of(["sh"], environment) == expected


@pytest.mark.parametrize(("program", "expected"), [("mpirun.openmpi", OPEN_MPI), ("mpirun.mpich", MPICH)])
def test_the_mpi_of_a_launcher(program: str, expected: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    assert implementation_of([program, "-n", "2", "sh"], {}) == expected


def test_choices() -> None:
    with pytest.raises(UsageError, match="--messages some"):
        way_of("some", ["sh"], {})
    assert way_of("no", ["sh"], {}) is None
    assert way_of("auto", [], {}) is None
    assert way_of("auto", ["sh"], {"OMPI_MCA_pml_monitoring_enable": "1"}) is None  # it is somebody else's
    assert isinstance(way_of("auto", ["sh"], {}), Monitoring)


BETWEEN_GROUPS = "int {0}(void); int {1}(void) {{ return {0}(); }}\n"


def linked(folder: Path, name: str, function: str, *flags: str, calls: str = "main") -> Path:
    """A program, or a library, that asks the loader for a function."""
    source = folder / f"{name}.c"
    source.write_text(BETWEEN_GROUPS.format(function, calls))
    command = ["cc", str(source), "-o", str(folder / name), "-Wl,--unresolved-symbols=ignore-all", *flags]
    subprocess.run(command, check=True)
    return folder / name


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        ("MPI_Comm_spawn", True),
        ("MPI_Comm_spawn_multiple", True),
        ("PMPI_Intercomm_create", True),
        ("mpi_comm_accept_", True),
        ("MPI_Comm_connect", True),
        ("MPI_Intercomm_merge", False),
        ("my_MPI_Comm_spawn", False),
    ],
)
def test_programs_that_talk_to_other_groups(function: str, wanted: bool, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no compiler")
    program = linked(tmp_path, "app", function, "-s", "-shared", "-fPIC")
    assert uses_intercommunicators([str(program)], {}) == wanted
    chosen = way_of("auto", ["sh", str(program)], {"OMPI_COMM_WORLD_RANK": "0"})
    assert (chosen is not None and chosen.name != "monitoring") == wanted
    assert isinstance(way_of("monitoring", [str(program)], {}), Monitoring)


def test_programs_whose_own_library_talks_to_other_groups(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no compiler")
    linked(tmp_path, "libown.so", "MPI_Comm_spawn", "-shared", "-fPIC", calls="own")
    flags = (f"-L{tmp_path}", "-lown")
    program = linked(tmp_path, "app", "own", *flags, "-Wl,-rpath,$ORIGIN")
    assert uses_intercommunicators([str(program)], {})
    program = linked(tmp_path, "app", "own", *flags)
    assert not uses_intercommunicators([str(program)], {})
    assert uses_intercommunicators([str(program)], {"LD_LIBRARY_PATH": f"/none:{tmp_path}"})


def test_the_preload_library_reads_the_same_variables(repository: Path) -> None:
    source = (repository / "profiler/native/preload/processes.c").read_text()
    names = re.search(r"names\[\] = \{([^}]*)\}", source)
    assert names is not None
    assert tuple(re.findall(r'"(\w+)"', names[1])) == rank.RANK_VARIABLES
    assert f'"{rank.SLURM_TASKS}"' in source


def test_kinds_are_those_of_the_library(repository: Path) -> None:
    header = (repository / "profiler/native/messages/messages.h").read_text()
    kinds = re.search(r"enum ms_kind \{([^}]*)\}", header)
    assert kinds is not None
    assert tuple(word.strip().removeprefix("MS_").lower() for word in kinds[1].split(",")) == _KINDS
