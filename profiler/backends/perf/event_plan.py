"""From what a machine offers to the events that `perf record` is asked for: a pure function for each sampler.

They ask for the program's own (user mode) accesses wherever the hardware can tell, which also needs the least
privilege. None of this was tested on hardware: see docs/results/hardware.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from numaplan.common import MachineLacksError, UsageError

from ..base import PerfChoices
from .hardware_samplers import Hardware, Pmu, core_pmus, samplers_of, spe_pmus

WITH_PMU = "run on the machine itself, or have the virtual PMU enabled"
BARE_METAL = f"{WITH_PMU}; '--backend emulate' works without"
# The auxiliary event of mem-loads must be in its group but need not sample: its period is out of reach.
_NEVER = 0x7FFFFFFF
NO_PHYSICAL = ("physical addresses are for root (CAP_SYS_ADMIN) only", "sudo nprof record …")
_IBS_STEP, _IBS_LEAST = 16, 0x90
_IBS_ADDRESSES = (6, 1)
_IBS_PER_TASK = (6, 2)
_RING_PAGES = "1024"  # per cpu; more than an unprivileged user may lock
_MONOTONIC = ("-k", "CLOCK_MONOTONIC")

# Backend -> setting of `--set` -> its default, and what else it may say (for cycles: any up to 65535).
#   ldlat, min_latency: least latency of a sampled load (3: every load) or access; stores: sample them, too;
#   llc: sample loads that local and remote DRAM served also by events of their own (all: and remote caches,
#   which may take more counters than there are); l3missonly: only misses of the L3 cache (Zen 4 and later).
SETTINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "pebs": {"ldlat": ("3",), "llc": ("yes", "no", "all"), "stores": ("yes", "no")},
    "ibs": {"l3missonly": ("no", "yes")},
    "spe": {"min_latency": ("0",)},
}
_MOST_CYCLES = 65535

# Intel's precise events of loads that missed the last-level cache, by processor generation. The numbers are
# those of Intel's published event lists. Events go to perf by number with their name added, so that a perf
# older than the processor records them. Client processors have one node and no such events. Generations
# before Haswell are left out: they give no address with these events, and the level of their loads tells the
# same.
_INTEL_FAMILY = 6
_HASWELL = (
    "mem_load_uops_l3_miss_retired",
    {"local_dram": 0x01, "remote_dram": 0x04, "remote_hitm": 0x10, "remote_fwd": 0x20},
)
_SKYLAKE = (
    "mem_load_l3_miss_retired",
    {"local_dram": 0x01, "remote_dram": 0x02, "remote_hitm": 0x04, "remote_fwd": 0x08},
)
_LLC_MISS = 0xD3
# Model -> the family of events. Haswell-EP; Broadwell-DE and -EP; Skylake, Cascade and Cooper Lake;
# Ice Lake-SP and -D; Sapphire and Emerald Rapids; Granite Rapids and -D.
_SERVERS = {
    **dict.fromkeys((0x3F, 0x56, 0x4F), _HASWELL),
    **dict.fromkeys((0x55, 0x6A, 0x6C, 0x8F, 0xCF, 0xAD, 0xAE), _SKYLAKE),
}


@dataclass(frozen=True)
class EventPlan:
    """What to ask perf for.

    period: as the hardware takes it; machine_wide: it cannot be bound to a program's threads; notes: what the
    user should know of it.
    """

    backend: str
    events: tuple[str, ...]
    options: tuple[str, ...]
    period: int
    machine_wide: bool = False
    notes: tuple[str, ...] = ()


def plan_events(
    backend: str, hardware: Hardware, period: int, choices: PerfChoices, settings: Mapping[str, str]
) -> EventPlan:
    """The plan of `pebs`, `ibs` or `spe` for a machine.

    Raises MachineLacksError when the sampler is not there or needs more privilege, UsageError for a setting
    that it does not have.
    """
    sampler = next(one for one in samplers_of(hardware.pmus) if one.backend == backend)
    if not sampler.ok:
        raise MachineLacksError(f"backend {backend}: {sampler.reason}", BARE_METAL)
    plan = _PLANS[backend](hardware, period, read_settings(backend, settings))
    level = 0 if plan.machine_wide else 2 if _user_only(plan) else 1
    if not hardware.privileged and (hardware.paranoid is None or hardware.paranoid > level):
        raise MachineLacksError(
            f"backend {backend}: perf_event_paranoid is {hardware.paranoid}",
            f"sudo sysctl kernel.perf_event_paranoid={level}",
        )
    if choices.phys and not hardware.phys:
        raise MachineLacksError(*NO_PHYSICAL)
    phys = ("--phys-data",) if hardware.phys and backend != "spe" else ()
    ring = ring_options(hardware.privileged)
    return replace(plan, events=choices.events or plan.events, options=(*plan.options, *phys, *ring))


def ring_options(privileged: bool) -> tuple[str, ...]:
    """Larger buffers for perf, where their memory is not limited."""
    return ("-m", _RING_PAGES) if privileged else ()


def read_settings(backend: str, given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a backend with their defaults; raises UsageError naming the one that is wrong."""
    known = SETTINGS[backend]
    values = {name: allowed[0] for name, allowed in known.items()}
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"backend {backend} has no setting {name!r}", f"choose from {', '.join(known)}")
        if known[name][0].isdecimal():
            if not (value.isascii() and value.isdecimal() and int(value[:6]) <= _MOST_CYCLES):
                raise UsageError(f"{name}={value}: not a number of cycles", f"give 0 to {_MOST_CYCLES}")
        elif value not in known[name]:
            raise UsageError(f"{name}={value}: not known", f"give one of {', '.join(known[name])}")
        values[name] = value
    return values


def _user_only(plan: EventPlan) -> bool:
    return all(event.rpartition("/")[2].startswith("u") or event.endswith(":uP") for event in plan.events)


def _pebs(hardware: Hardware, period: int, settings: Mapping[str, str]) -> EventPlan:
    events: list[str] = []
    for name in core_pmus(hardware.pmus):
        pmu = hardware.pmus[name]
        events.append(_loads(name, pmu, settings["ldlat"]))
        if "mem-stores" in pmu.events and settings["stores"] == "yes":
            events.append(f"{name}/mem-stores/uP")
        if settings["llc"] != "no":
            only_dram = settings["llc"] == "yes"
            events += llc_miss_events(name, hardware.family, hardware.model, only_dram)
    return EventPlan("pebs", tuple(events), ("-d", "-W", *_MONOTONIC), period)


def _loads(name: str, pmu: Pmu, latency: str) -> str:
    """The event of loads; where the kernel lists an auxiliary event, the group in which it must stand."""
    term = f",ldlat={latency}" if "ldlat" in pmu.formats else ""
    if "mem-loads-aux" in pmu.events:
        return f"{{{name}/mem-loads-aux,period={_NEVER}/,{name}/mem-loads{term}/}}:uP"
    return f"{name}/mem-loads{term}/uP"


def llc_miss_events(pmu: str, family: int, model: int, only_dram: bool) -> list[str]:
    """perf's `-e` arguments for loads that local or remote DRAM (or a remote cache) served; user mode."""
    if family != _INTEL_FAMILY or model not in _SERVERS:
        return []
    prefix, masks = _SERVERS[model]
    return [
        f"{pmu}/event=0x{_LLC_MISS:x},umask=0x{mask:x},name={prefix}.{name}/uP"
        for name, mask in masks.items()
        if name.endswith("_dram") or not only_dram
    ]


def _ibs(hardware: Hardware, period: int, settings: Mapping[str, str]) -> EventPlan:
    if hardware.kernel < _IBS_ADDRESSES:
        major, minor = hardware.kernel
        raise MachineLacksError(
            f"backend ibs: Linux {major}.{minor} gives no addresses with IBS", "boot Linux 6.1 or later"
        )
    formats = hardware.pmus["ibs_op"].formats
    terms = []
    if "cnt_ctl" in formats:
        terms.append("cnt_ctl=1")  # count operations, not cycles: one in so many accesses, too
    notes = []
    if settings["l3missonly"] == "yes":
        if "l3missonly" not in formats:
            raise MachineLacksError("ibs_op has no l3missonly here", "leave it out, or use Zen 4 or later")
        terms.append("l3missonly=1")
        notes.append("only accesses that missed the third-level cache; the hardware varies the period")
    user = "swfilt" in formats
    if user:
        terms.append("swfilt=1")
    rounded = max(_IBS_LEAST, round(period / _IBS_STEP) * _IBS_STEP)
    if rounded != period:
        notes.append(f"IBS counts in steps of {_IBS_STEP}: period {rounded}")
    return EventPlan(
        "ibs",
        (f"ibs_op/{','.join(terms)}/{'u' if user else ''}",),
        ("-d", "-W", *_MONOTONIC),
        rounded,
        machine_wide=hardware.kernel < _IBS_PER_TASK,
        notes=tuple(notes),
    )


def _spe(hardware: Hardware, period: int, settings: Mapping[str, str]) -> EventPlan:
    names = spe_pmus(hardware.pmus)
    terms = ["ts_enable=1", "load_filter=1", "store_filter=1", f"min_latency={settings['min_latency']}"]
    if hardware.phys:
        terms.insert(1, "pa_enable=1")
    if all("jitter" in hardware.pmus[name].formats for name in names):
        terms.append("jitter=1")
    intervals = [hardware.pmus[name].caps.get("min_interval", "") for name in names]
    least = max((int(text) for text in intervals if text.isdecimal() and len(text) < 9), default=0)
    notes = (f"this SPE samples one in {least} operations at most",) if period < least else ()
    events = tuple(f"{name}/{','.join(terms)}/u" for name in names)
    # No other clock than perf's own: the hardware's time stamps are converted to that one.
    return EventPlan("spe", events, ("-d",), max(period, least), notes=notes)


_PLANS: dict[str, Callable[[Hardware, int, Mapping[str, str]], EventPlan]] = {
    "pebs": _pebs,
    "ibs": _ibs,
    "spe": _spe,
}
