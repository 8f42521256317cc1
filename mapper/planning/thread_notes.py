"""What is worth saying of the threads that a plan is for."""

from numaplan.machine import Machine

from ..workload.lifetimes.lanes import most_at_once
from ..workload.workload import Workload


def thread_notes(workload: Workload, machine: Machine) -> list[str]:
    """Sentences for people: that a larger machine than the recorded one may have more threads run on it."""
    there = workload.machine
    if there is None or not workload.lives or len({process for process, _ in workload.threads}) != 1:
        return []
    few, many, most = len(there.cpus), len(machine.cpus), most_at_once(workload.threads, workload.lives)
    if not 2 <= few < many or not few <= most <= few + 1:  # one more: the first often waits for the others
        return []
    return [
        f"it had {most} threads at once where it saw {few} cpus: if it makes as many as it sees, it makes"
        f" others on {many}; nprof record with the same --machine shows it all of them"
    ]
