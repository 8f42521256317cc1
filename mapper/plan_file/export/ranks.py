"""Launchers of ranks: a line or mask a process; of one process as if each thread were a rank.

On one node, which the plan is for: Slurm would begin its list again on each of several.
"""

from collections.abc import Sequence

from numaplan.common import UsageError
from numaplan.machine import format_list

from ..plan import Plan
from .kept import lost, ranks_bound, remarks
from .placement import homes_of, processes, rank_command, ranks

MOST_SLOT = 40  # characters; Open MPI 4.1 overruns a buffer at 49


def rankfile(plan: Plan) -> str:
    """The file that mpirun of Open MPI reads."""
    return "\n".join(
        ["# mpirun --mca rmaps_rank_file_physical 1 --rankfile THIS_FILE ./app", _kept(plan), _slots(plan)]
    )


def openmpi(plan: Plan) -> str:
    """The same with the line that reads it, to paste into a shell."""
    words = (
        f"mpirun -n {len(ranks(plan))} --mca rmaps_rank_file_physical 1"
        " --mca hwloc_base_mem_alloc_policy local_only --rankfile numaplan.ranks"
    )
    return f"cat >numaplan.ranks <<'END'\n{_slots(plan)}\nEND\n{words} {rank_command(plan)}\n{_kept(plan)}"


def _slots(plan: Plan) -> str:
    slots = [format_list(cpus) for cpus in ranks(plan)]
    long = next((rank for rank, slot in enumerate(slots) if len(slot) > MOST_SLOT), None)
    if long is not None:
        raise UsageError(
            f"rankfile: the cpus of rank {long} ({slots[long]}) are more than mpirun can hold",
            "use nlaunch: mpirun --bind-to none nlaunch --plan PLAN ./app",
        )
    return "\n".join(f"rank {rank}=localhost slot={slot}" for rank, slot in enumerate(slots))


def hydra(plan: Plan) -> str:
    """MPICH's and Intel's launcher."""
    own = ranks(plan)
    sets = ",".join("+".join(map(str, cpus)) for cpus in own)
    return f"mpiexec.hydra -n {len(own)} -bind-to user:{sets} {rank_command(plan)}\n{_kept(plan)}"


def slurm(plan: Plan) -> str:
    """Cpus and memory of each rank by lists, or by masks where a rank has several."""
    own = ranks(plan)
    cpus = _binding("cpu", own)
    memory = _binding("mem", [homes_of(plan, cpus) for cpus in own])
    return f"srun --nodes=1 --ntasks={len(own)} {cpus} {memory} {rank_command(plan)}\n{_kept(plan)}"


def _binding(what: str, sets: Sequence[tuple[int, ...]]) -> str:
    if all(len(one) == 1 for one in sets):
        return f"--{what}-bind=map_{what}:{','.join(str(one[0]) for one in sets)}"
    masks = ",".join(hex(sum(1 << number for number in one)) for one in sets)
    return f"--{what}-bind=mask_{what}:{masks}"


def _kept(plan: Plan) -> str:
    several = len(processes(plan)) > 1
    said = [ranks_bound(plan), lost(plan, threads=several)]
    count, threads = len(ranks(plan)), len(plan.threads)
    if not several and count > 1:
        living = f"{threads} threads" + f", {count} at a time" * (count < threads)
        said.append(
            f"the plan is of one process with {living}: this starts it {count} times, for programs "
            "whose ranks were those threads; else take taskset or numactl, or nlaunch"
        )
    return remarks(said)
