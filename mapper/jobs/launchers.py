"""How a job is started as planned: the command line for a launcher, and the files that this reads.

Launchers place ranks on hosts and bind nothing: inside each rank nlaunch binds threads and places memory.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from numaplan.common import UsageError, shell_line

from .document import JobPlan

LISTS = ".hosts"  # how the files are called that name a host for each rank
KEPT = "# kept: all of the plan, by nlaunch on each host, which must find the job's plan there"
CRAY_ORDER = "MPICH_RANK_ORDER"  # the only name that Cray's MPI reads


class JobStart(msgspec.Struct, frozen=True):
    """The command line, and the text of the file beside it (its name as the command says it)."""

    command: str
    file: Path
    text: str

    def script(self) -> str:
        """Lines to paste into a shell, which make the file too."""
        made = f"cat >{shell_line([str(self.file)])} <<'END'\n{self.text}END\n"
        return f"{made}{self.command}\n{KEPT}\n"


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
    return FORMS[form](job, _program(job, job_path), place)


def _program(job: JobPlan, job_path: Path) -> list[str]:
    """nlaunch and what it starts; by its path where a shell would not find it."""
    beside = Path(sys.executable).with_name("nlaunch")
    found = shutil.which("nlaunch") or not beside.exists()
    app = next((plan.app.argv for plan in job.hosts.values() if plan.app.argv), ("./app",))
    return ["nlaunch" if found else str(beside), "--job", str(job_path), *app]


def _hosts(job: JobPlan) -> list[str]:
    """The host of each rank."""
    return [one.host for one in job.ranks]


def _openmpi(job: JobPlan, program: Sequence[str], place: Path) -> JobStart:
    """Slots do not matter where nothing is bound, but a rankfile must name one."""
    file = place.with_suffix(".ranks")
    text = "".join(f"rank {one.rank}={one.host} slot=0\n" for one in job.ranks)
    words = ["mpirun", "-n", str(len(job.ranks)), "--rankfile", str(file), "--bind-to", "none"]
    return JobStart(shell_line([*words, *program]), file, text)


def _seq(job: JobPlan, program: Sequence[str], place: Path) -> JobStart:
    file = place.with_suffix(LISTS)
    words = ["mpirun", "-n", str(len(job.ranks)), "--hostfile", str(file), "--map-by", "seq"]
    text = "".join(f"{host}\n" for host in _hosts(job))
    return JobStart(shell_line([*words, "--bind-to", "none", *program]), file, text)


def _slurm(job: JobPlan, program: Sequence[str], place: Path) -> JobStart:
    file = place.with_suffix(LISTS)
    counts = [f"--nodes={len(set(_hosts(job)))}", f"--ntasks={len(job.ranks)}"]
    words = ["srun", *counts, "--distribution=arbitrary", "--cpu-bind=none", *program]
    text = "".join(f"{host}\n" for host in _hosts(job))
    return JobStart(f"SLURM_HOSTFILE={shell_line([str(file)])} {shell_line(words)}", file, text)


def _hydra(job: JobPlan, program: Sequence[str], place: Path) -> JobStart:
    file = place.with_suffix(LISTS)
    words = ["mpiexec.hydra", "-f", str(file), "-n", str(len(job.ranks)), "-bind-to", "none"]
    text = "".join(f"{host}:{len(list(ranks))}\n" for host, ranks in groupby(_hosts(job)))
    return JobStart(shell_line([*words, *program]), file, text)


def _cray(job: JobPlan, program: Sequence[str], place: Path) -> JobStart:
    """The launcher fills host after host; MPI then numbers these places by the file."""
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
    words = ["mpiexec", *counts, "--cpu-bind", "none", *program]
    text = "".join(",".join(map(str, ranks[host])) + "\n" for host in hosts)
    return JobStart(f"MPICH_RANK_REORDER_METHOD=3 {shell_line(words)}", file, text)


FORMS: dict[str, Callable[[JobPlan, Sequence[str], Path], JobStart]] = {
    "openmpi": _openmpi,
    "seq": _seq,
    "slurm": _slurm,
    "hydra": _hydra,
    "cray": _cray,
}
