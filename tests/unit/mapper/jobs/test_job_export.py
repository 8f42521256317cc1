"""A job's plan as lines for launchers, and the files that they read."""

from pathlib import Path

import msgspec
import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.mapper.commands.main import main
from numaplan.mapper.jobs.launchers import FORMS, KEPT, JobStart, export_job
from tests.support.jobs import job_of

MACHINE = Machine.load("2x4")


def export(form: str, *order: str, argv: tuple[str, ...] = ("./app", "two words")) -> JobStart:
    return export_job(job_of(argv, order, MACHINE), Path("job.json"), form, Path("job.json"))


def after_nlaunch(command: str) -> str:
    """What it starts; nlaunch may be named by its path."""
    return command.partition("nlaunch ")[2]


@pytest.mark.parametrize(
    "form,command,file,text",
    [
        (
            "openmpi",
            "mpirun -n 3 --rankfile job.ranks --bind-to none",
            "job.ranks",
            "rank 0=b slot=0\nrank 1=a slot=0\nrank 2=b slot=0\n",
        ),
        ("seq", "mpirun -n 3 --hostfile job.hosts --map-by seq --bind-to none", "job.hosts", "b\na\nb\n"),
        (
            "slurm",
            "SLURM_HOSTFILE=job.hosts srun --nodes=2 --ntasks=3 --distribution=arbitrary --cpu-bind=none",
            "job.hosts",
            "b\na\nb\n",
        ),
        ("hydra", "mpiexec.hydra -f job.hosts -n 3 -bind-to none", "job.hosts", "b:1\na:1\nb:1\n"),
        (
            "cray",
            "MPICH_RANK_REORDER_METHOD=3 mpiexec -n 3 --ppn 2 --hosts b,a --cpu-bind none",
            "MPICH_RANK_ORDER",
            "0,2\n1\n",
        ),
    ],
)
def test_lines_and_files(form: str, command: str, file: str, text: str) -> None:
    start = export(form, "b", "a", "b")
    assert start.command.startswith(f"{command} ")
    assert after_nlaunch(start.command) == "--job job.json ./app 'two words'"
    assert (str(start.file), start.text) == (file, text)
    assert start.script() == f"cat >{file} <<'END'\n{text}END\n{start.command}\n{KEPT}\n"


def test_ranks_do_not_start_the_job_again() -> None:
    """'nprof record --reduce mpirun -n 3 ./app' has the launcher in its command line."""
    job = job_of(("mpirun", "-n", "3", "./app", "5"), ("a", "a", "a"), MACHINE)
    named = {
        host: msgspec.structs.replace(plan, app=msgspec.structs.replace(plan.app, executable="app"))
        for host, plan in job.hosts.items()
    }
    start = export_job(
        msgspec.structs.replace(job, hosts=named), Path("job.json"), "openmpi", Path("job.json")
    )
    assert after_nlaunch(start.command) == "--job job.json ./app 5"


def test_ranks_side_by_side_are_one_entry_for_hydra() -> None:
    assert export("hydra", "a", "a", "b", "a").text == "a:2\nb:1\na:1\n"


def test_cray_s_order_needs_hosts_that_are_alike() -> None:
    assert export("cray", "a", "b", "b", "c", "c").text == "1,2\n3,4\n0\n"
    with pytest.raises(UsageError, match="1 to 2 ranks on a host"):
        export("cray", "a", "b", "b", "c")


def several(form: str, *argvs: str) -> JobStart:
    """Of a job whose ranks, on hosts b, a, b in turn, run these."""
    order = [("b", "a", "b")[number % 3] for number in range(len(argvs))]
    job = job_of(("./first",), order, MACHINE)
    ranks = [
        msgspec.structs.replace(one, argv=tuple(argv.split("|")))
        for one, argv in zip(job.ranks, argvs, strict=True)
    ]
    return export_job(
        msgspec.structs.replace(job, ranks=tuple(ranks)), Path("job.json"), form, Path("job.json")
    )


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("openmpi", "mpirun --rankfile job.ranks --bind-to none"),
        ("seq", "mpirun --default-hostfile job.hosts --map-by seq --bind-to none"),
        ("hydra", "mpiexec.hydra -f job.hosts -bind-to none"),
    ],
)
def test_each_rank_starts_its_own_program(form: str, options: str) -> None:
    command = several(form, "./atmos", "./ocean|two words", "./ocean|two words", "./atmos").command
    launch = command.removeprefix(f"{options} -n 1 ").partition(" --job")[0]
    atmos, ocean = (f"{launch} --job job.json {app}" for app in ("./atmos", "./ocean 'two words'"))
    assert command == f"{options} -n 1 {atmos} : -n 2 {ocean} : -n 1 {atmos}"
    assert " : " not in several(form, "./atmos", "./atmos").command


def test_slurm_reads_the_programs_of_ranks_from_a_file() -> None:
    start = several("slurm", "./atmos", "./ocean|3", "./ocean|3")
    assert start.command.endswith(" --cpu-bind=none --multi-prog job.programs")
    ((file, text),) = start.others
    lines = [line.partition(" ")[0] + " " + after_nlaunch(line) for line in text.splitlines()]
    assert (str(file), lines) == (
        "job.programs", ["0 --job job.json ./atmos", "1-2 --job job.json ./ocean 3"]
    )  # fmt: skip
    assert f"cat >job.programs <<'END'\n{text}END\n" in start.script()
    with pytest.raises(UsageError, match="slurm: 'two words' cannot stand"):
        several("slurm", "./atmos", "./ocean|two words")


def test_the_files_of_several_programs_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = job_of(order=("a", "b"), machine=MACHINE)
    ranks = tuple(msgspec.structs.replace(one, argv=(f"./app{one.rank}",)) for one in job.ranks)
    msgspec.structs.replace(job, ranks=ranks).save("job.json")
    assert main(["export", "job.json", "--format", "slurm", "-o", "run.sh"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"job.json", "run.sh", "run.hosts", "run.programs"}
    assert "--multi-prog run.programs" in Path("run.sh").read_text()
    assert main(["export", "job.json", "--format", "slurm", "-o", "run.programs"]) == 2


def test_cray_starts_one_program() -> None:
    with pytest.raises(UsageError, match="cray: the job runs several programs"):
        several("cray", "./atmos", "./ocean", "./ocean")


def test_what_cannot_be_started_is_refused() -> None:
    job = job_of(order=("a", "b"), machine=MACHINE)
    with pytest.raises(UsageError, match="take one of openmpi, seq, slurm, hydra, cray"):
        export_job(job, Path("job.json"), "omp", Path("job.json"))
    without = msgspec.structs.replace(job, ranks=job.ranks[1:], hosts={"b": job.hosts["b"]})
    with pytest.raises(UsageError, match="no rank 0"):
        export_job(without, Path("job.json"), "seq", Path("job.json"))


@pytest.mark.parametrize("form", FORMS)
def test_the_command_writes_the_line_and_its_file(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job_of(order=("a", "b"), machine=MACHINE).save("job.json")
    (tmp_path / "out").mkdir()
    assert main(["export", "job.json", "--format", form, "-o", "out/run.sh"]) == 0
    assert main(["export", "job.json", "--format", form]) == 0
    printed = capsys.readouterr().out
    line = (tmp_path / "out/run.sh").read_text()
    names = {path.name for path in (tmp_path / "out").iterdir()} - {"run.sh"}
    assert len(names) == 1 and (form == "cray" or f"out/{names.pop()}" in line)
    assert printed.startswith("cat >") and printed.endswith(f"./app\n{KEPT}\n")


def test_a_file_is_not_written_over_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job_of(order=("a",), machine=MACHINE).save("job.json")
    assert main(["export", "job.json", "--format", "seq", "-o", "run.hosts"]) == 2
    assert "has this name" in capsys.readouterr().err
