"""Every form of export by its name: a function from a plan to the text, with what it keeps as a comment."""

from collections.abc import Callable

from numaplan.common import UsageError

from ..plan import Plan
from .cgroup import cgroup
from .commands import hwloc, numactl, taskset
from .containers import docker, podman
from .kubernetes import kubernetes
from .libvirt import libvirt
from .nri import nri
from .openmp import gomp, kmp, omp
from .ranks import hydra, openmpi, rankfile, slurm
from .systemd import systemd

FORMS: dict[str, Callable[[Plan], str]] = {
    "omp": omp,
    "gomp": gomp,
    "kmp": kmp,
    "taskset": taskset,
    "numactl": numactl,
    "hwloc": hwloc,
    "cgroup": cgroup,
    "systemd": systemd,
    "podman": podman,
    "docker": docker,
    "kubernetes": kubernetes,
    "nri": nri,
    "libvirt": libvirt,
    "rankfile": rankfile,
    "openmpi": openmpi,
    "hydra": hydra,
    "slurm": slurm,
}


def export_plan(plan: Plan, form: str) -> str:
    """The text for a form in FORMS; raises UsageError for another, or a plan without threads."""
    if form not in FORMS:
        raise UsageError(f"unknown format {form!r}", f"take one of {', '.join(FORMS)}")
    if plan.alone and not plan.threads:
        raise UsageError(f"the plan's answer is to leave the program alone ({plan.alone})", "run it as it is")
    if not plan.threads:
        raise UsageError("the plan places no thread", "there is nothing to export")
    return FORMS[form](plan) + "\n"
