"""The name perf gives to an event whose file does not name it."""

from collections.abc import Mapping

from .attrs import Attr

HARDWARE, SOFTWARE, TRACEPOINT, CACHE, RAW, BREAKPOINT = range(6)
_HARDWARE = (
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
)
_SOFTWARE = (
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
)
_CACHES = ("L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node")
_OPERATIONS = (("loads", "load-misses"), ("stores", "store-misses"), ("prefetches", "prefetch-misses"))


def event_name(attr: Attr, pmus: Mapping[int, str]) -> str:
    """perf's name for the event, modifiers included; pmus: names of dynamic PMU types, where known."""
    config = attr.config & 0xFFFFFFFF if attr.type == HARDWARE else attr.config
    if attr.type == HARDWARE and config < len(_HARDWARE):
        return _HARDWARE[config] + _modifiers(attr)
    if attr.type == SOFTWARE and config < len(_SOFTWARE):
        return _SOFTWARE[config] + _modifiers(attr)
    if attr.type == CACHE and (name := _cache_name(config)):
        return name + _modifiers(attr)
    if attr.type == RAW:
        return f"raw 0x{config:x}" + _modifiers(attr)
    if attr.type == TRACEPOINT:
        return f"tracepoint:{config}"
    if attr.type == BREAKPOINT:
        return f"mem:0x{attr.config1:x}" + _modifiers(attr)
    if attr.type in pmus:
        return f"{pmus[attr.type]}/config=0x{config:x}/" + _modifiers(attr)
    return f"event {attr.type}:0x{config:x}"


def _cache_name(config: int) -> str:
    cache, operation, result = config & 0xFF, config >> 8 & 0xFF, config >> 16 & 0xFF
    if cache >= len(_CACHES) or operation >= len(_OPERATIONS) or result > 1:
        return ""
    return f"{_CACHES[cache]}-{_OPERATIONS[operation][result]}"


def _modifiers(attr: Attr) -> str:
    """`:u` for user only, `:pp` for precision, `:H` for host only …, as perf appends them."""
    flags, letters = attr.flags, ""
    guests_left_out_by_default = False
    if flags & {"exclude_kernel", "exclude_user", "exclude_hv"}:
        spaces = (("exclude_kernel", "k"), ("exclude_user", "u"), ("exclude_hv", "h"))
        letters += "".join(letter for name, letter in spaces if name not in flags)
        guests_left_out_by_default = True
    if attr.precise_ip:
        letters += "p" * attr.precise_ip
        guests_left_out_by_default = True
    if "exclude_host" in flags or ("exclude_guest" in flags) == guests_left_out_by_default:
        letters += "H" * ("exclude_host" not in flags) + "G" * ("exclude_guest" not in flags)
    return f":{letters}" if letters else ""
