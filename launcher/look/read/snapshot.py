"""Two looks at processes: the first cheap, the second with their memory, which the kernel must count."""

from collections.abc import Sequence
from pathlib import Path

from .model import Snapshot
from .processes import read_process
from .system import read_system

ROOT = Path("/")


def read_snapshot(root: Path, pids: Sequence[int], before: Snapshot | None = None) -> Snapshot:
    """What the tree says of these processes now; before: the first look, if this is the second."""
    # Our own work is not to count as somebody's: it comes before what is counted, and after it.
    system = read_system(root, frozenset(pids), _ran(before)) if before else None
    found = [read_process(root, pid, whole=before is not None) for pid in pids]
    return Snapshot(system or read_system(root, frozenset(pids)), tuple(one for one in found if one))


def _ran(before: Snapshot) -> dict[int, int]:
    return {other.pid: other.ran_ns for other in before.system.others}
