"""Which rank of which MPI job a process is: by the variables that its launcher set.

Imports nothing heavy: the program waits for it.
"""

import os
import re
from collections.abc import Mapping

# Open MPI, PMIx, PMI (MPICH, Intel), Slurm: as native/preload/processes.c reads them, in this order.
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
SLURM_TASKS = "SLURM_STEP_NUM_TASKS"
# In the order of RANK_VARIABLES: the job's size, the rank on its host, the job.
SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", SLURM_TASKS)
LOCAL_VARIABLES = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
LOCAL_SIZE_VARIABLES = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
_SLURM_NODE = "SLURM_NODEID"
_SLURM_SIZES = "SLURM_STEP_TASKS_PER_NODE"  # such as 2(x3),1
_SIZE = re.compile(r"([0-9]{1,7})(?:\(x([0-9]{1,6})\))?")
JOB_VARIABLES = ("SLURM_JOB_ID", "PMIX_NAMESPACE", "PMI_JOBID", "PBS_JOBID")
_LONGEST = 256  # characters of a job's name
_END = (1 << 32) - 2  # a control file's entries hold a rank in 32 bits
_MOST_DIGITS = 20


def rank_of(environment: Mapping[str, str]) -> int | None:
    """The rank, None outside a job; Slurm's batch script has a number, but only srun's tasks are ranks."""
    return _number(environment, RANK_VARIABLES)


def job_facts(environment: Mapping[str, str]) -> dict[str, object]:
    """What a trace says of the job that this process is a rank of: `rank`, `host`; `ranks`, `local_rank`
    and `job` where the launcher tells. Nothing outside a job."""
    rank = rank_of(environment)
    if rank is None:
        return {}
    found = {
        "rank": rank,
        "ranks": _number(environment, SIZE_VARIABLES),
        "local_rank": _number(environment, LOCAL_VARIABLES),
        "host": os.uname().nodename,
        "job": next((environment[name][:_LONGEST] for name in JOB_VARIABLES if environment.get(name)), None),
    }
    return {name: value for name, value in found.items() if value is not None}


def ranks_here(environment: Mapping[str, str]) -> int | None:
    """How many ranks of the job run on this host, None where the launcher does not tell."""
    found = _number(environment, LOCAL_SIZE_VARIABLES)
    node = _number(environment, (_SLURM_NODE,))
    if found is not None or node is None:
        return found
    for word in environment.get(_SLURM_SIZES, "").split(","):
        count = _SIZE.fullmatch(word)
        if not count:
            return None
        node -= int(count[2] or 1)
        if node < 0:
            return int(count[1])
    return None


def first_process(environment: Mapping[str, str]) -> str:
    """What the first process that is started in this environment is called: `r3` for rank 3, else `p0`."""
    rank = rank_of(environment)
    return "p0" if rank is None else f"r{rank}"


def _number(environment: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    """The first of the variables that has one."""
    for name in names:
        text = environment.get(name, "")
        if name.startswith("SLURM_") and SLURM_TASKS not in environment:
            continue
        if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) < _END:
            return int(text)
    return None
