"""What was observed of a run, before it is compared with the plan."""

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class SeenThread:
    """A thread: cpus as last read back (empty: not read), if the plan names it, errno of binding."""

    process: str
    path: str
    tid: int
    cpus: tuple[int, ...] = ()
    planned: bool = False
    error: int = 0
    pid: int = 0
    ended: bool = False


@dataclass
class SeenRegion:
    """A planned region that appeared: size, errno of placing, bytes by (node of the plan, node found).

    -1 stands for a node not planned, or a page not touched. address and pid: where it was last.
    """

    bytes: int = 0
    error: int = 0
    pages: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    address: int = 0
    pid: int = 0


@dataclass
class Observed:
    """A run as it was seen; regions by their row in the compact form; outside: processes that a
    tracer followed.

    next_touch: bytes marked, pages moved, pages that could not be moved; full: nodes that had, while it
    ran, no room for what was planned there.
    """

    processes: list[str] = field(default_factory=list)
    threads: dict[tuple[str, str], SeenThread] = field(default_factory=dict)
    regions: dict[int, SeenRegion] = field(default_factory=lambda: defaultdict(SeenRegion))
    bad_form: bool = False
    lost: int = 0
    outside: set[str] = field(default_factory=set)
    next_touch: tuple[int, int, int] = (0, 0, 0)
    full: set[int] = field(default_factory=set)
