"""From recorded machines to what perf is asked for."""

from dataclasses import replace
from pathlib import Path

import pytest

from numaplan.common import MachineLacksError, UsageError
from numaplan.machine import Machine
from numaplan.profiler.backends.base import PerfChoices
from numaplan.profiler.backends.choice import choose_backend
from numaplan.profiler.backends.perf.command import perf_arguments
from numaplan.profiler.backends.perf.event_plan import SETTINGS, EventPlan, llc_miss_events, plan_events
from numaplan.profiler.backends.perf.hardware_samplers import Hardware, Pmu, clock_khz, read_hardware
from numaplan.profiler.perfdata.accesses.event_kinds import event_codes
from numaplan.profiler.trace.schema import EVENTS

LOCAL_DRAM = "cpu/event=0xd3,umask=0x1,name=mem_load_l3_miss_retired.local_dram/uP"
REMOTE_DRAM = "cpu/event=0xd3,umask=0x2,name=mem_load_l3_miss_retired.remote_dram/uP"
ROOT = {"privileged": True, "phys": True, "paranoid": 4}


@pytest.fixture
def trees(repository: Path) -> Path:
    return repository / "tests/replay/sysfs"


def plan(hardware: Hardware, backend: str, period: int = 1000, **settings: str) -> EventPlan:
    return plan_events(backend, hardware, period, PerfChoices(), settings)


def test_skylake_sp(trees: Path) -> None:
    made = plan(read_hardware(trees / "skylake-sp-2s"), "pebs")
    assert made.events == ("cpu/mem-loads,ldlat=3/uP", "cpu/mem-stores/uP", LOCAL_DRAM, REMOTE_DRAM)
    # An ordinary user: neither physical addresses nor large buffers.
    assert made.options == ("-d", "-W", "-k", "CLOCK_MONOTONIC")
    assert (made.period, made.machine_wide) == (1000, False)


def test_sapphire_rapids_groups_the_auxiliary_event(trees: Path) -> None:
    made = plan(read_hardware(trees / "sapphire-rapids-2s"), "pebs", ldlat="30")
    assert made.events[0] == "{cpu/mem-loads-aux,period=2147483647/,cpu/mem-loads,ldlat=30/}:uP"
    assert made.events[1:] == ("cpu/mem-stores/uP", LOCAL_DRAM, REMOTE_DRAM)
    assert {"--phys-data", "-m"} <= set(made.options)


def test_hybrid_cores_have_events_each(trees: Path) -> None:
    made = plan(read_hardware(trees / "alder-lake"), "pebs")
    assert made.events == (
        "{cpu_core/mem-loads-aux,period=2147483647/,cpu_core/mem-loads,ldlat=3/}:uP",
        "cpu_core/mem-stores/uP",
        "cpu_atom/mem-loads,ldlat=3/uP",
        "cpu_atom/mem-stores/uP",
    )


@pytest.mark.parametrize(
    ("settings", "stores", "misses"),
    [
        ({"llc": "no"}, 1, 0),
        ({"llc": "all"}, 1, 4),
        ({"stores": "no"}, 0, 2),
        ({"stores": "no", "llc": "no"}, 0, 0),
    ],
)
def test_events_that_can_be_left_out(trees: Path, settings: dict[str, str], stores: int, misses: int) -> None:
    events = plan(read_hardware(trees / "skylake-sp-2s"), "pebs", **settings).events
    assert sum("mem-stores" in event for event in events) == stores
    assert sum("l3_miss" in event for event in events) == misses


def test_ibs_without_filter_is_machine_wide_before_linux_6_2(trees: Path) -> None:
    made = plan(read_hardware(trees / "epyc-zen3-2s"), "ibs")
    assert made.events == ("ibs_op/cnt_ctl=1/",)
    assert made.machine_wide and made.period == 992
    assert any("992" in note for note in made.notes)


def test_ibs_of_zen4_filters_user_mode(trees: Path) -> None:
    zen4 = read_hardware(trees / "epyc-zen4-1s-nps4")
    made = plan(zen4, "ibs", period=1600)
    assert made.events == ("ibs_op/cnt_ctl=1,swfilt=1/u",)
    assert (made.machine_wide, made.period, made.notes) == (False, 1600, ())
    missing = plan(zen4, "ibs", l3missonly="yes")
    assert missing.events == ("ibs_op/cnt_ctl=1,l3missonly=1,swfilt=1/u",)
    assert any("third-level" in note for note in missing.notes)


@pytest.mark.parametrize(("period", "taken"), [(1, 144), (150, 144), (152, 160), (1 << 20, 1 << 20)])
def test_ibs_takes_multiples_of_16(trees: Path, period: int, taken: int) -> None:
    assert plan(read_hardware(trees / "epyc-zen4-1s-nps4"), "ibs", period=period).period == taken


def test_l3missonly_needs_zen4(trees: Path) -> None:
    with pytest.raises(MachineLacksError, match="l3missonly"):
        plan(read_hardware(trees / "epyc-zen3-2s"), "ibs", l3missonly="yes")


def test_an_old_kernel_gives_no_addresses_with_ibs(trees: Path) -> None:
    with pytest.raises(MachineLacksError, match=r"Linux 3\.10 gives no addresses") as caught:
        plan(read_hardware(trees / "opteron-4s"), "ibs")
    assert "6.1" in caught.value.hint


def test_spe_keeps_to_its_least_interval(trees: Path) -> None:
    graviton = read_hardware(trees / "graviton3")
    made = plan(graviton, "spe", min_latency="7")
    assert made.events == (
        "arm_spe_0/ts_enable=1,pa_enable=1,load_filter=1,store_filter=1,min_latency=7,jitter=1/u",
    )
    assert made.period == 1024 and any("1024" in note for note in made.notes)
    assert "CLOCK_MONOTONIC" not in made.options
    assert plan(graviton, "spe", period=5000).period == 5000
    ordinary = plan(replace(graviton, privileged=False, phys=False), "spe")
    assert "pa_enable" not in ordinary.events[0]


@pytest.mark.parametrize("backend", ["pebs", "ibs", "spe"])
def test_a_cloud_machine_has_none(trees: Path, backend: str) -> None:
    with pytest.raises(MachineLacksError, match=f"backend {backend}: ") as caught:
        plan(read_hardware(trees / "cloud-vm"), backend)
    assert "emulate" in caught.value.hint


def test_a_hypervisor_that_hides_precise_events() -> None:
    pmu = Pmu(events=frozenset({"mem-loads"}), caps={"max_precise": "0"})
    with pytest.raises(MachineLacksError, match="no precise events"):
        plan(Hardware(pmus={"cpu": pmu}, **ROOT), "pebs")


@pytest.mark.parametrize(
    ("tree", "backend", "paranoid", "wanted"),
    [
        ("skylake-sp-2s", "pebs", 3, 2),
        ("epyc-zen4-1s-nps4", "ibs", 3, 2),
        ("epyc-zen3-2s", "ibs", 1, 0),
    ],
)
def test_privilege_that_each_needs(trees: Path, tree: str, backend: str, paranoid: int, wanted: int) -> None:
    user = replace(read_hardware(trees / tree), privileged=False, phys=False, paranoid=paranoid)
    with pytest.raises(MachineLacksError) as caught:
        plan(user, backend)
    assert caught.value.hint == f"sudo sysctl kernel.perf_event_paranoid={wanted}"
    plan(replace(user, paranoid=wanted), backend)


def test_physical_addresses_are_refused_to_ordinary_users(trees: Path) -> None:
    hardware = read_hardware(trees / "skylake-sp-2s")
    with pytest.raises(MachineLacksError, match="physical"):
        plan_events("pebs", hardware, 1000, PerfChoices(phys=True), {})


@pytest.mark.parametrize(
    ("backend", "setting", "value"),
    [
        ("pebs", "ldlat", "x"),
        ("pebs", "ldlat", "65536"),
        ("pebs", "ldlat", ""),
        ("pebs", "llc", "maybe"),
        ("pebs", "min_latency", "3"),
        ("ibs", "l3missonly", "1"),
        ("spe", "min_latency", "-1"),
    ],
)
def test_wrong_settings(trees: Path, backend: str, setting: str, value: str) -> None:
    tree = {"pebs": "skylake-sp-2s", "ibs": "epyc-zen4-1s-nps4", "spe": "graviton3"}[backend]
    with pytest.raises(UsageError, match=setting):
        plan(read_hardware(trees / tree), backend, **{setting: value})


def test_every_default_setting_is_accepted(trees: Path) -> None:
    hardware = read_hardware(trees / "skylake-sp-2s")
    defaults = {name: allowed[0] for name, allowed in SETTINGS["pebs"].items()}
    assert plan(hardware, "pebs", **defaults) == plan(hardware, "pebs")


@pytest.mark.parametrize(
    ("model", "local", "remote"),
    [(0x3F, 0x1, 0x4), (0x4F, 0x1, 0x4), (0x55, 0x1, 0x2), (0x6A, 0x1, 0x2), (0x8F, 0x1, 0x2)],
)
def test_misses_by_generation(model: int, local: int, remote: int) -> None:
    events = llc_miss_events("cpu", 6, model, only_dram=True)
    assert [event.split(",")[1] for event in events] == [f"umask=0x{local:x}", f"umask=0x{remote:x}"]


def test_processors_without_remote_memory_have_no_such_events() -> None:
    assert llc_miss_events("cpu_core", 6, 151, only_dram=False) == []
    assert llc_miss_events("cpu", 25, 0x55, only_dram=False) == []


def test_the_importer_knows_every_event_that_we_ask_for(trees: Path) -> None:
    wanted = {
        "skylake-sp-2s": ["load", "store", "llc_miss_local", "llc_miss_remote"],
        "epyc-zen4-1s-nps4": ["load"],
    }
    for tree, kinds in wanted.items():
        hardware = read_hardware(trees / tree)
        backend = "pebs" if "cpu" in hardware.pmus and "ibs_op" not in hardware.pmus else "ibs"
        codes = event_codes(plan(hardware, backend).events)
        assert [EVENTS[code] for code in codes] == kinds


def test_arguments_of_perf() -> None:
    choices = PerfChoices(max_bytes=1 << 30)
    assert perf_arguments(["a", "b"], ["-d"], 500, choices) == [
        *("-B", "-N", "--no-bpf-event", "-e", "a", "-e", "b", "-c", "500", "--sample-cpu", "-d"),
        *("--max-size", "1073741824B"),
    ]
    asked = perf_arguments(["a"], [], 500, PerfChoices(freq=99, events=("x",)))
    assert asked == ["-B", "-N", "--no-bpf-event", "-e", "x", "-F", "99", "--sample-cpu"]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("cpu-clock", "cpu-clock/period=250000,name=cpu-clock/"),
        ("cpu-clock//", "cpu-clock/period=250000,name=cpu-clock/"),
        ("cpu-clock:u", "cpu-clock/period=250000,name=cpu-clock:u/u"),
        ("faults,task-clock//k", "faults,task-clock/period=250000,name=task-clock:k/k"),
        (
            "{task-clock,cpu-clock}:u",
            "{task-clock/period=250000,name=task-clock/,cpu-clock/period=250000,name=cpu-clock/}:u",
        ),
        ("cpu-clock/period=10/", "cpu-clock/period=10/"),
        ("cycles/name=cpu-clock/", "cycles/name=cpu-clock/"),
        ("my-cpu-clock", "my-cpu-clock"),
    ],
)
def test_clocks_do_not_tick_for_each_nanosecond(asked: str, given: str) -> None:
    assert perf_arguments([], [], 1, PerfChoices(events=(asked,)))[4] == given
    slower = perf_arguments([], [], 10**6, PerfChoices(events=(asked,)))[4]
    assert slower == given.replace("=250000", "=1000000")
    at_a_rate = perf_arguments([], [], 1, PerfChoices(freq=99, events=(asked,)))
    assert at_a_rate[4:7] == [asked, "-F", "99"]


@pytest.mark.parametrize(
    ("tree", "needs_perf", "chosen"),
    [
        ("skylake-sp-2s", False, "pebs"),
        ("epyc-zen3-2s", False, "ibs"),
        ("graviton3", False, "spe"),
        ("cloud-vm", False, "emulate"),
        ("cloud-vm", True, "faults"),
        ("opteron-4s", False, "emulate"),
    ],
)
def test_auto_prefers_hardware(trees: Path, tree: str, needs_perf: bool, chosen: str) -> None:
    machine = Machine.load(str(trees / tree))
    choices = PerfChoices(duration=1.0 if needs_perf else 0.0)
    backend, why = choose_backend("auto", machine, choices, trees / tree)
    assert backend.name == chosen and why
    assert ("gives no addresses" in why) == (tree == "opteron-4s")


def test_emulation_refuses_what_only_perf_can() -> None:
    with pytest.raises(UsageError, match="--duration"):
        choose_backend("emulate", Machine.load("2x1"), PerfChoices(duration=1.0))


@pytest.mark.parametrize(("name", "hint"), [("emulate", "without being asked"), ("lab", "--backend emulate")])
def test_who_asks_for_calls_is_told_where_they_are(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match="--call-graph") as refused:
        choose_backend(name, Machine.load("2x1"), PerfChoices(call_graph=True))
    assert hint in refused.value.hint


@pytest.mark.parametrize("text", ["", "\0\0", "cpu family: x\nmodel: 99999999999\n"])
def test_trees_with_nonsense_are_empty_hardware(tmp_path: Path, text: str) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(text)
    (tmp_path / "sys/bus/event_source/devices").mkdir(parents=True)
    (tmp_path / "sys/bus/event_source/devices/cpu").write_text("a file where a folder should be")
    hardware = read_hardware(tmp_path)
    assert (hardware.family, hardware.model, hardware.kernel) == (0, 0, (0, 0))
    assert hardware.pmus["cpu"] == Pmu()


@pytest.mark.parametrize(
    ("cpuinfo", "base", "khz"),
    [
        ("model name\t: Xeon Gold 6130 CPU @ 2.10GHz\ncpu MHz\t\t: 2800.000\n", "", 2_100_000),
        ("model name\t: EPYC 7742\ncpu MHz\t\t: 2245.780\n", "", 2_245_780),
        ("model name\t: Xeon @ 2.10GHz\n", "1900000\n", 1_900_000),
        ("cpu MHz : much\n", "x", 1_000_000),
    ],
)
def test_the_clock_that_latencies_are_counted_in(tmp_path: Path, cpuinfo: str, base: str, khz: float) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(cpuinfo)
    frequency = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq/base_frequency"
    frequency.parent.mkdir(parents=True)
    frequency.write_text(base)
    assert clock_khz(tmp_path) == pytest.approx(khz)
