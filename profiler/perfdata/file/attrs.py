"""perf_event_attr, of every size that was ever written (64 to 144 bytes) and in both byte orders.

Field positions and bit numbers are the kernel's ABI (include/uapi/linux/perf_event.h).
"""

import struct
from dataclasses import dataclass, field

# sample_type
IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCH_STACK = (
    1 << bit for bit in range(12)
)
REGS_USER, STACK_USER, WEIGHT, DATA_SRC, IDENTIFIER, TRANSACTION, REGS_INTR, PHYS_ADDR = (
    1 << bit for bit in range(12, 20)
)
AUX, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE, WEIGHT_STRUCT = (1 << bit for bit in range(20, 25))
# read_format
READ_TIME_ENABLED, READ_TIME_RUNNING, READ_ID, READ_GROUP, READ_LOST = (1 << bit for bit in range(5))
# branch_sample_type
BRANCH_HW_INDEX, BRANCH_COUNTERS = 1 << 17, 1 << 19

_FLAGS = {
    "inherit": 1,
    "exclude_user": 4,
    "exclude_kernel": 5,
    "exclude_hv": 6,
    "freq": 10,
    "sample_id_all": 18,
    "exclude_host": 19,
    "exclude_guest": 20,
    "use_clockid": 25,
}
_PRECISE_IP_BIT = 15
SMALLEST = 64
LARGEST = 4096  # far beyond any kernel's; more is damage


@dataclass
class Attr:
    """One event as it was opened, with the ids its samples carry."""

    type: int = 0
    size: int = 0
    config: int = 0
    config1: int = 0
    sample_period: int = 0
    sample_type: int = 0
    read_format: int = 0
    branch_sample_type: int = 0
    sample_regs_user: int = 0
    sample_regs_intr: int = 0
    clockid: int = 0
    precise_ip: int = 0
    flags: frozenset[str] = frozenset()
    ids: list[int] = field(default_factory=list)
    name: str = ""


def parse_attr(data: bytes, order: str) -> Attr:
    """The attr in `data` (its known fields; missing ones are 0); order: '<' or '>', the file's byte order."""
    known = data[:LARGEST].ljust(144, b"\0")
    kind, size, config, period, sample_type, read_format, flags = struct.unpack_from(order + "2I5Q", known)
    config1, _config2, branch, regs_user = struct.unpack_from(order + "4Q", known, 56)
    (clockid,) = struct.unpack_from(order + "i", known, 92)
    (regs_intr,) = struct.unpack_from(order + "Q", known, 96)
    return Attr(
        type=kind,
        size=size,
        config=config,
        config1=config1,
        sample_period=period,
        sample_type=sample_type,
        read_format=read_format,
        branch_sample_type=branch,
        sample_regs_user=regs_user,
        sample_regs_intr=regs_intr,
        clockid=clockid,
        precise_ip=_precision(flags, order),
        flags=frozenset(name for name, bit in _FLAGS.items() if _flag(flags, bit, order)),
    )


def _flag(flags: int, bit: int, order: str) -> int:
    """Big-endian compilers lay bit fields out from the top bit."""
    return flags >> (bit if order == "<" else 63 - bit) & 1


def _precision(flags: int, order: str) -> int:
    """Two bits, the first of which is the higher one on big-endian machines."""
    first, second = (_flag(flags, _PRECISE_IP_BIT + index, order) for index in range(2))
    return first + 2 * second if order == "<" else 2 * first + second
