"""Which rank of an MPI job a process is: by the variables that its launcher set.

Imports nothing heavy: the program waits for it.
"""

from collections.abc import Mapping

# Open MPI, PMIx, PMI (MPICH, Intel), Slurm: as native/preload/processes.c reads them, in this order.
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
SLURM_TASKS = "SLURM_STEP_NUM_TASKS"
_END = (1 << 32) - 2  # a control file's entries hold a rank in 32 bits
_MOST_DIGITS = 20


def rank_of(environment: Mapping[str, str]) -> int | None:
    """The rank, None outside a job; Slurm's batch script has a number, but only srun's tasks are ranks."""
    for name in RANK_VARIABLES:
        text = environment.get(name, "")
        if name == "SLURM_PROCID" and SLURM_TASKS not in environment:
            continue
        if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) < _END:
            return int(text)
    return None


def first_process(environment: Mapping[str, str]) -> str:
    """What the first process that is started in this environment is called: `r3` for rank 3, else `p0`."""
    rank = rank_of(environment)
    return "p0" if rank is None else f"r{rank}"
