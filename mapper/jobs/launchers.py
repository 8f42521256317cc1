"""How a job is started as planned: the command line for a launcher, and the files that this reads.

Launchers place ranks on hosts and bind nothing: inside each rank nlaunch binds threads and places memory.
"""

import re
import shutil
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from numaplan.common import UsageError, rank_words, shell_line
from numaplan.machine import format_list

from .document import JobPlan

LISTS = ".hosts"  # how the files are called that name a host for each rank
PROGRAMS = ".programs"  # and those that name a program
KEPT = "# kept: all of the plan, by nlaunch on each host, which must find the job's plan there"
_PLAIN = re.compile(r"[\w./:=,+@~-]+", re.ASCII)
CRAY_ORDER = "MPICH_RANK_ORDER"  # the only name that Cray's MPI reads


class JobStart(msgspec.Struct, frozen=True):
    """The command line, the text of the file beside it (its name as the command says it), and of others that
    it reads."""

    command: str
    file: Path
    text: str
    others: tuple[tuple[Path, str], ...] = ()

    @property
    def files(self) -> tuple[tuple[Path, str], ...]:
        """Name and text of all."""
        return ((self.file, self.text), *self.others)

    def script(self) -> str:
        """Lines to paste into a shell, which make the files too."""
        made = "".join(f"cat >{shell_line([str(file)])} <<'END'\n{text}END\n" for file, text in self.files)
        return f"{made}{self.command}\n{KEPT}\n"


class Started(NamedTuple):
    """Ranks in a row, and nlaunch with the program that they run."""

    ranks: Sequence[int]
    words: Sequence[str]


def export_job(job: JobPlan, job_path: Path, form: str, place: Path) -> JobStart:
    """How to start the job by a launcher in FORMS; place: the path that the file's name is made of.

    Raises UsageError for another form, and for a job that this launcher cannot place.
    """
    if form not in FORMS:
        raise UsageError(f"unknown format {form!r} for a job", f"take one of {', '.join(FORMS)}")
    for number, one in enumerate(job.ranks):
        if one.rank != number:
            raise UsageError(
                f"the plan has no rank {number}", "reduce the parts of all ranks, and plan again"
            )
    if not job.ranks:
        raise UsageError("the plan has no rank", "there is nothing to export")
    return FORMS[form](job, _programs(job, job_path), place)


def _programs(job: JobPlan, job_path: Path) -> list[Started]:
    """What ranks start, in their order; nlaunch by its path where a shell would not find it."""
    beside = Path(sys.executable).with_name("nlaunch")
    found = shutil.which("nlaunch") or not beside.exists()
    start = ["nlaunch" if found else str(beside), "--job", str(job_path)]
    recorded = (rank_words(plan.app.argv, plan.app.executable) for plan in job.hosts.values())
    app = next(filter(None, recorded), ["./app"])
    return [
        Started([one.rank for one in ranks], [*start, *argv])
        for argv, ranks in groupby(job.ranks, key=lambda one: one.argv or app)
    ]


def _line(launcher: Sequence[str], options: Sequence[str], programs: Sequence[Started]) -> str:
    """`launcher -n 4 options program`, of several `launcher options -n 1 program : -n 3 other`."""
    parts = [["-n", str(len(one.ranks))] for one in programs]
    if len(programs) == 1:
        return shell_line([*launcher, *parts[0], *options, *programs[0].words])
    sections = [shell_line([*part, *one.words]) for part, one in zip(parts, programs, strict=True)]
    return f"{shell_line([*launcher, *options])} {' : '.join(sections)}"


def _hosts(job: JobPlan) -> list[str]:
    """The host of each rank."""
    return [one.host for one in job.ranks]


def _openmpi(job: JobPlan, programs: Sequence[Started], place: Path) -> JobStart:
    """Slots do not matter where nothing is bound, but a rankfile must name one."""
    file = place.with_suffix(".ranks")
    text = "".join(f"rank {one.rank}={one.host} slot=0\n" for one in job.ranks)
    return JobStart(_line(["mpirun"], ["--rankfile", str(file), "--bind-to", "none"], programs), file, text)


def _seq(job: JobPlan, programs: Sequence[Started], place: Path) -> JobStart:
    """A hostfile is one program's, and each would begin at its first line again."""
    file = place.with_suffix(LISTS)
    listed = "--hostfile" if len(programs) == 1 else "--default-hostfile"
    text = "".join(f"{host}\n" for host in _hosts(job))
    options = [listed, str(file), "--map-by", "seq", "--bind-to", "none"]
    return JobStart(_line(["mpirun"], options, programs), file, text)


def _slurm(job: JobPlan, programs: Sequence[Started], place: Path) -> JobStart:
    file = place.with_suffix(LISTS)
    counts = [f"--nodes={len(set(_hosts(job)))}", f"--ntasks={len(job.ranks)}"]
    words = ["srun", *counts, "--distribution=arbitrary", "--cpu-bind=none"]
    text = "".join(f"{host}\n" for host in _hosts(job))
    others: tuple[tuple[Path, str], ...] = ()
    if len(programs) == 1:
        words += programs[0].words
    else:
        others = ((place.with_suffix(PROGRAMS), "".join(map(_slurm_s_line, programs))),)
        words += ["--multi-prog", str(others[0][0])]
    return JobStart(f"SLURM_HOSTFILE={shell_line([str(file)])} {shell_line(words)}", file, text, others)


def _slurm_s_line(one: Started) -> str:
    """Of a file for --multi-prog, which has rules of its own for all but plain words."""
    odd = next((word for word in one.words if not _PLAIN.fullmatch(word)), None)
    if odd is not None:
        raise UsageError(
            f"slurm: {shell_line([odd])} cannot stand in the file that names the programs of ranks",
            "start these ranks' program by a script without such arguments",
        )
    return f"{format_list(one.ranks)} {' '.join(one.words)}\n"


def _hydra(job: JobPlan, programs: Sequence[Started], place: Path) -> JobStart:
    file = place.with_suffix(LISTS)
    text = "".join(f"{host}:{len(list(ranks))}\n" for host, ranks in groupby(_hosts(job)))
    return JobStart(_line(["mpiexec.hydra", "-f", str(file)], ["-bind-to", "none"], programs), file, text)


def _cray(job: JobPlan, programs: Sequence[Started], place: Path) -> JobStart:
    """The launcher fills host after host; MPI then numbers these places by the file."""
    if len(programs) > 1:
        raise UsageError(
            "cray: the job runs several programs, and its ranks would be numbered after their start",
            "take openmpi, seq, slurm or hydra",
        )
    ranks: dict[str, list[int]] = {}
    for one in job.ranks:
        ranks.setdefault(one.host, []).append(one.rank)
    hosts = sorted(ranks, key=lambda host: -len(ranks[host]))
    most, full = len(ranks[hosts[0]]), [host for host in hosts if len(ranks[host]) == len(ranks[hosts[0]])]
    if len(full) < len(hosts) - 1:
        least = len(ranks[hosts[-1]])
        raise UsageError(
            f"cray: the plan has {least} to {most} ranks on a host, where all but one must have as many",
            "plan with as many slots on each host",
        )
    file = place.with_name(CRAY_ORDER)
    counts = ["-n", str(len(job.ranks)), "--ppn", str(most), "--hosts", ",".join(hosts)]
    words = ["mpiexec", *counts, "--cpu-bind", "none", *programs[0].words]
    text = "".join(",".join(map(str, ranks[host])) + "\n" for host in hosts)
    return JobStart(f"MPICH_RANK_REORDER_METHOD=3 {shell_line(words)}", file, text)


FORMS: dict[str, Callable[[JobPlan, Sequence[Started], Path], JobStart]] = {
    "openmpi": _openmpi,
    "seq": _seq,
    "slurm": _slurm,
    "hydra": _hydra,
    "cray": _cray,
}
