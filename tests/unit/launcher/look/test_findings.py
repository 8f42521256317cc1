"""Findings that need a machine or a kernel that the lab does not have, and those that must not be."""

import msgspec

from numaplan.launcher.look.find.finding import Finding
from numaplan.launcher.look.find.findings import find
from numaplan.launcher.look.find.view import View
from numaplan.launcher.look.read.model import Device, Other, Part, Sampled
from numaplan.machine import Cache, Core, Machine, Node
from tests.support.look_views import MIB, process, thread, view

SIBLINGS = Machine(
    nodes=(Node(id=0, cpus=(0, 1, 4, 5)), Node(id=1, cpus=(2, 3, 6, 7))),
    cores=tuple(Core(cpus=(cpu, cpu + 4), node=cpu // 2) for cpu in range(4)),
)
SLOW = Machine(
    nodes=(Node(id=0, cpus=(0, 1)), Node(id=2, memory_bytes=1 << 34)), distances=((10, 24), (24, 10))
)


def found(seen: View) -> list[Finding]:
    return list(find(seen).findings)


def names(seen: View) -> list[str]:
    return [finding.name for finding in found(seen)]


def test_siblings_doubled_while_a_core_idles() -> None:
    threads = [thread(11, 0, cpus=[0]), thread(12, 4, cpus=[4])]
    (finding,) = found(view(SIBLINGS, process(10, threads, {0: 8})))
    assert (finding.name, finding.cure) == ("siblings-doubled", ("taskset -cp 1 12",))
    assert finding.evidence == (
        "cpus 0,4 are one core: threads 11, 12 run at once 100 % of the time (measured)",
    )
    assert not finding.measured and "may" in finding.cost  # no counter tells what that takes of their speed
    every = [thread(20 + cpu, cpu, cpus=[cpu]) for cpu in range(8)]
    assert not names(view(SIBLINGS, process(10, every, {0: 8, 1: 8})))


def test_siblings_that_take_turns_matter_less() -> None:
    both = [thread(11, 0, cpus=[0], ran=0.7), thread(12, 4, cpus=[4], ran=0.4)]
    (finding,) = found(view(SIBLINGS, process(10, both, {0: 8})))
    assert finding.evidence[0].endswith("run at once 10 % to 40 % of the time (measured)")
    always = [thread(11, 0, cpus=[0]), thread(12, 4, cpus=[4])]
    (other,) = found(view(SIBLINGS, process(10, always, {0: 8})))
    assert finding.weight < other.weight


def test_memory_without_cpus_though_there_is_room() -> None:
    away = process(10, [thread(11, 0)], {0: 10, 2: 90})
    (finding,) = found(view(SLOW, away))
    assert (finding.name, finding.cure) == ("slow-memory", ("migratepages 10 2 0",))
    assert not names(view(SLOW, away, free={0: 10}))


def test_pages_that_wander() -> None:
    threads = [thread(11, 0), thread(12, 2), thread(13, 4), thread(14, 6)]
    spread = process(10, threads, dict.fromkeys(range(4), 64))
    moved = {"numa_pages_migrated": 20_000, "numa_hint_faults": 40_000}
    (finding,) = found(view("4x2", spread, counters=moved))
    assert finding.name == "pages-wander" and finding.measured
    assert "78 MiB of pages a second" in finding.what
    assert not names(view("4x2", spread, counters={"numa_pages_migrated": 100}))


def test_swapped_though_there_is_room() -> None:
    bound = process(10, [thread(11, 2)], {1: 64}, policy="bind:1", swapped=64 * MIB)
    (finding,) = found(view("2x2", bound, free={0: 900, 1: 1}))
    assert (finding.name, finding.cure) == ("swapped", ("numactl --preferred=0 ./app 1000",))
    confined = process(
        10,
        [thread(11, 2, mems=(1,))],
        {1: 64},
        swapped=64 * MIB,
        cgroup="/sys/fs/cgroup/system.slice/app.service",
    )
    (finding,) = found(view("2x2", confined, free={0: 900, 1: 1}))
    assert finding.cure == ("systemctl set-property --runtime app.service AllowedMemoryNodes=0-1",)


def test_a_device_on_another_node() -> None:
    gpu = (Device("/dev/nvidia0", 1),)
    (finding,) = found(view("2x2", process(10, [thread(11, 0)], {0: 8}, devices=gpu)))
    assert (finding.name, finding.cure) == (
        "device-away",
        ("numactl --cpunodebind=1 --membind=1 ./app 1000",),
    )
    assert not names(view("2x2", process(10, [thread(11, 2)], {1: 8}, devices=gpu)))


def test_another_program_on_our_cpu() -> None:
    ours = process(10, [thread(11, 2, cpus=[2], ran=0.5, waited=0.5)], {1: 8})
    other = Other(99, "theirs", 0, ((2,),))
    (finding,) = found(view("2x2", ours, others=(other,)))
    assert (finding.name, finding.cure) == ("programs-on-one-cpu", ("taskset -cp 3 11",))
    assert "theirs (99)" in finding.what
    assert not names(view("2x2", ours, others=(Other(99, "theirs", 0, ((3,),)),)))


def test_hint_faults_are_a_measure() -> None:
    faults = {0: 300, 1: 100}
    away = process(10, [thread(11, 2, cpus=[2, 3], faults=faults)], {0: 64})
    (finding,) = found(view("2x2", away))
    assert finding.measured and finding.cost.startswith("75 % of the pages")


def test_samples_show_parts_that_are_away() -> None:
    threads = [thread(11 + cpu, cpu) for cpu in range(8)]
    dealt = process(10, threads, dict.fromkeys(range(4), 64), policy="interleave:0-3")
    (finding,) = found(view("4x2", dealt, sampled={10: Sampled(5000, 0.74, 0.95)}))
    assert finding.name == "parts-away" and finding.measured
    assert finding.cost == "74 % of 5000 sampled accesses are remote"
    assert "interleave:0-3" in finding.what and finding.cure[0].startswith("nprof record")
    shared = find(view("4x2", dealt, sampled={10: Sampled(5000, 0.74, 0.1)}))
    assert not shared.findings and not shared.sure and "share" in shared.reason
    assert not find(view("4x2", dealt, sampled={10: Sampled(9, 0.74, 0.95)})).findings


def test_samples_show_that_memory_far_away_is_not_used() -> None:
    away = process(10, [thread(11, 2)], {0: 64, 1: 8})
    answer = find(view("2x2", away, sampled={10: Sampled(5000, 0.02, 0.9)}))
    assert answer.sure and answer.reason == "2 % of 5000 sampled accesses are remote"
    (finding,) = found(view("2x2", away, sampled={10: Sampled(5000, 0.9, 0.9)}))
    assert finding.name == "memory-away" and finding.measured


def test_memory_that_has_no_room_stays_and_its_threads_come() -> None:
    for cpus in ([], [2, 3]):
        away = process(10, [thread(11, 2, cpus=cpus)], {0: 600})
        (finding,) = found(view("2x2", away, free={0: 10, 1: 20}))
        assert (finding.name, finding.cure) == ("threads-away", ("taskset -acp 0-1 10",))


def test_a_container_is_told_in_its_engines_words() -> None:
    folder = f"/sys/fs/cgroup/system.slice/docker-{'ab12' * 16}.scope"
    confined = process(10, [thread(11, 2, cpus=[2, 3], mems=(0,))], {0: 64}, cgroup=folder)
    (finding,) = found(view("2x2", confined))
    assert finding.name == "cpuset-without-memory"
    assert finding.cure == ("docker update --cpuset-mems=1 ab12ab12ab12",)


def test_a_cgroup_that_gives_too_few_cpus() -> None:
    threads = [thread(tid, 2, cpus=[2], ran=0.5, waited=0.5) for tid in (11, 12)]
    narrow = process(10, threads, {1: 8}, cgroup="/sys/fs/cgroup/jobs/1", cpuset=(2,))
    (finding,) = found(view("2x2", narrow))
    assert (finding.name, finding.cure) == ("too-few-cpus", ("echo 2-3 > /sys/fs/cgroup/jobs/1/cpuset.cpus",))


def test_the_machines_caches_decide_what_is_small() -> None:
    caches = (Cache(level=3, bytes=32 * MIB, cpus=((0, 1), (2, 3))),)
    machine = msgspec.structs.replace(Machine.load("2x2"), caches=caches)
    small = process(10, [thread(11, 2)], {0: 20})
    answer = find(view(machine, small))
    assert not answer.findings and "fit into the caches (32 MiB each)" in answer.reason
    assert names(view("2x2", small)) == ["memory-away"]


def test_page_cache_is_nobodys() -> None:
    parts = (Part("default", "file", {0: 900 * MIB}), Part("default", "anon", {1: 8 * MIB}))
    assert not names(view("2x2", process(10, [thread(11, 2)], parts=parts)))


def test_what_cannot_be_seen_is_said() -> None:
    hidden = msgspec.structs.replace(process(10, [thread(11, 2)]), memory=None, hidden="its memory is hidden")
    answer = find(view("2x2", hidden))
    assert not answer.sure and "could not be seen: its memory is hidden" in answer.reason


def test_what_the_machine_does_not_show_does_no_harm() -> None:
    every = range(256)  # a kernel allows cpus that are not there
    threads = [thread(11, 2, cpus=every, ran=0.5), thread(12, 200, cpus=[200], ran=0.5)]
    bound = process(10, threads, {7: 64}, policy="bind:7")
    (finding,) = found(view("2x2", bound))
    assert finding.name in ("policy-away", "memory-away") and finding.cure
    crowd = [thread(tid, 2, cpus=[2, 99], ran=0.3, waited=0.6) for tid in range(11, 15)]
    assert names(view("2x2", process(10, crowd, {1: 8}))) == ["too-few-cpus"]


def test_one_node() -> None:
    answer = find(view("1x4", process(10, [thread(11, 2)], {0: 64})))
    assert answer.sure and answer.reason == "this machine has one node: all memory is local"
