"""What launchers are told of the guests, so that `mpirun -n 4 ./app` is all that a user writes."""

import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from numaplan.machine import Host
from numaplan.mapper import JobPlan

from ..places import lab_part

PARTS = ("nlab-shell", "nlab-serve", "nlab-rank")  # of lab/native/cluster, by the name that it is called by
RANKS = "NUMAPLAN_LAB_RANKS"  # a folder with the part of each planned rank
_PORTS = {
    "openmpi": (2300, 2499),
    "mpich": (2500, 2721),
}  # traffic.py counts what goes there as the launcher's
# What the user may have set otherwise.
_USUAL = {
    "OMPI_MCA_btl": "self,vader,tcp",
    "OMPI_MCA_pml": "^ucx",
    "OMPI_MCA_mpi_yield_when_idle": "1",  # who waits asks less often: emulated cpus share few real ones
    "UCX_TLS": "self,sm,tcp",
    "UCX_NET_DEVICES": "eth0",
}


def make_parts(folder: Path) -> Path:
    """A folder with the programs that run beside the user's; to be found by PATH."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    for name in PARTS:
        (place / name).symlink_to(lab_part("cluster.elf"))
    return place


def host_files(hosts: Sequence[Host], job: JobPlan | None) -> tuple[str, str]:
    """(for Open MPI, for MPICH) the hosts, which launchers fill one after the other; of a job the host of
    each rank."""
    if job is None:
        ours = "".join(f"{host.name} slots={host.slots}\n" for host in hosts)
        return ours, "".join(f"{host.name}:{host.slots}\n" for host in hosts)
    listed = [one.host for one in job.ranks]
    grouped = ((host, len(list(ranks))) for host, ranks in groupby(listed))
    return "".join(f"{host}\n" for host in listed), "".join(f"{host}:{n}\n" for host, n in grouped)


def launcher_environment(
    environment: Mapping[str, str], parts: Path, folder: Path, hosts: Sequence[Host], job: JobPlan | None
) -> dict[str, str]:
    """The user's environment with all that the launchers of Open MPI and MPICH need to reach the guests.

    folder: for files that they read; job: its ranks run on the hosts that it has them on.
    """
    openmpi, mpich = folder / "openmpi.hosts", folder / "mpich.hosts"
    for path, text in zip((openmpi, mpich), host_files(hosts, job), strict=True):
        path.write_text(text)
    low, high = _PORTS["openmpi"]
    set_by_us = {
        "PATH": f"{parts}{os.pathsep}{environment.get('PATH', os.defpath)}",
        "OMPI_MCA_plm_rsh_agent": "nlab-shell",
        "OMPI_MCA_orte_default_hostfile": str(openmpi),
        "OMPI_MCA_orte_keep_fqdn_hostnames": "1",
        "OMPI_MCA_orte_tmpdir_base": "/tmp",  # where the guests can make sockets
        "OMPI_MCA_oob_tcp_if_include": "eth0",
        "OMPI_MCA_oob_tcp_dynamic_ipv4_ports": f"{low}-{high}",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": str(parts / "nlab-shell"),
        "HYDRA_HOST_FILE": str(mpich),
        "HYDRA_IFACE": "eth0",
        "MPIEXEC_PORT_RANGE": ":".join(map(str, _PORTS["mpich"])),
    }
    if job is not None:
        set_by_us |= {
            "OMPI_MCA_rmaps_base_mapping_policy": "seq",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            RANKS: str(folder),
        }
    return {**_USUAL, **environment, **set_by_us}
