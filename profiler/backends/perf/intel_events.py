"""Intel's precise events of loads that missed the last-level cache, by processor generation.

The numbers are those of Intel's published event lists. Events go to perf by number with their name added, so
that a perf older than the processor records them. Client processors have one node and no such events.
Generations before Haswell are left out: they give no address with these events (the level of their loads
tells the same).
"""

_FAMILY = 6
_HASWELL = (
    "mem_load_uops_l3_miss_retired",
    {"local_dram": 0x01, "remote_dram": 0x04, "remote_hitm": 0x10, "remote_fwd": 0x20},
)
_SKYLAKE = (
    "mem_load_l3_miss_retired",
    {"local_dram": 0x01, "remote_dram": 0x02, "remote_hitm": 0x04, "remote_fwd": 0x08},
)
_EVENT = 0xD3
# Model -> the family of events. Haswell-EP; Broadwell-DE and -EP; Skylake, Cascade and Cooper Lake;
# Ice Lake-SP and -D; Sapphire and Emerald Rapids; Granite Rapids and -D.
_SERVERS = {
    **dict.fromkeys((0x3F, 0x56, 0x4F), _HASWELL),
    **dict.fromkeys((0x55, 0x6A, 0x6C, 0x8F, 0xCF, 0xAD, 0xAE), _SKYLAKE),
}


def llc_miss_events(pmu: str, family: int, model: int, only_dram: bool) -> list[str]:
    """perf's `-e` arguments for loads that local or remote DRAM (or a remote cache) served; user mode."""
    if family != _FAMILY or model not in _SERVERS:
        return []
    prefix, masks = _SERVERS[model]
    return [
        f"{pmu}/event=0x{_EVENT:x},umask=0x{mask:x},name={prefix}.{name}/uP"
        for name, mask in masks.items()
        if name.endswith("_dram") or not only_dram
    ]
