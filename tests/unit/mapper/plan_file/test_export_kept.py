"""What an export says that it keeps of the plan, worked out by hand, and how it treats a plan's words."""

import msgspec
import numpy as np
import pytest

from numaplan.analyzer import PageCounts
from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanRegion, PlanThread, Predicted, RegionKey, Run
from numaplan.mapper.plan_file.export import FORMS, export_plan
from numaplan.mapper.plan_file.touched import Touched, Whereabouts, local_share
from numaplan.mapper.planning.predict import with_touched

HALVES = {0: 0.5, 1: 0.5}
# Two threads on each of two nodes; the second group uses memory of the first, too.
TOUCHED = (
    Touched(process="p0", node=0, own=0.2, others=((0, 0.1),)),
    Touched(process="p0", node=1, own=0.4, others=((0, 0.3),)),
)
INTERLEAVED = {"alone": 2.0, "alone, interleaved": 1.0}


def plan(
    *processes: str, touched: tuple[Touched, ...] = TOUCHED, costs: dict[str, float] | None = None
) -> Plan:
    """Four threads on 2x4, cpus 0, 1, 4 and 5, of one process or of several."""
    names = processes or ("p0",)
    paths = ("0", "0.1", "0.2", "0.3") if len(names) == 1 else ("0", "0.1") * 2
    threads = [(names[n * len(names) // 4], paths[n], cpu) for n, cpu in enumerate((0, 1, 4, 5))]
    region = PlanRegion(
        region=RegionKey(kind="heap", name="grid", bytes=1 << 20, thread="0", sequence=1),
        policy="bind",
        runs=(Run(offset=0, bytes=1 << 20, node=1),),
    )
    return Plan(
        app=PlanApp(argv=("./app", "it's"), threads=4, executable="app"),
        machine=PlanMachine.of(Machine.load("2x4")),
        method="best",
        objective="time",
        threads=tuple(
            PlanThread(process=name, path=path, thread=at, node=cpu // 4, cpus=(cpu,), load=1)
            for at, (name, path, cpu) in enumerate(threads)
        ),
        memory=(region,),
        predicted=Predicted(
            remote_comm=0, remote_share=0, hop_cost=0, load_std=0,
            local_share=0.97, touched=touched, costs=costs or {},
        ),
    )  # fmt: skip


def kept(text: str) -> str:
    return next(line for line in text.split("kept: ")[1].splitlines()).partition(";")[0]


BOUND = {0: {0: 1.0}, 1: {1: 1.0}}
FREE = {0: HALVES, 1: HALVES}


@pytest.mark.parametrize("share,where,stays", [(0.7, BOUND, 0.5), (0.8, FREE, 1.0), (0.65, FREE, 0.5)])
def test_local_share_by_hand(share: float, where: dict[int, dict[int, float]], stays: float) -> None:
    """Bound: own 0.6, and 0.1 within the first group. Free: own 0.6, in a crowd 3/4 of it; half the rest."""
    assert local_share(TOUCHED, lambda group: Whereabouts(where[group.node], stays)) == pytest.approx(share)


def test_who_uses_what_whom_touched_is_counted_by_process_and_node() -> None:
    """A page of thread 0's on node 0 that all use, and memory of thread 2's own."""
    elsewhere = np.zeros((4, 4))
    elsewhere[2, 2] = 20
    user, none = np.array([0, 1, 2]), np.zeros(3, np.int64)
    key = RegionKey(kind="heap", name="grid", bytes=4096)
    pages = PageCounts(
        [key], none, none, user, np.array([40, 20, 20]), none, toucher=none, elsewhere=elsewhere
    )  # fmt: skip
    found = with_touched(plan().predicted, pages, plan().threads).touched
    assert found == (
        Touched(process="p0", node=0, own=0.4, others=((0, 0.2),)),
        Touched(process="p0", node=1, own=0.2, others=((0, 0.2),)),
    )
    assert elsewhere.sum() == 20
    unknown = msgspec.structs.replace(pages, toucher=None)
    assert with_touched(plan(touched=()).predicted, unknown, plan().threads).touched == ()


def test_local_share_of_interleaved_memory_is_the_share_of_the_nodes() -> None:
    assert local_share(TOUCHED, lambda _: Whereabouts(HALVES, 1.0), (0, 1)) == pytest.approx(0.5)
    assert local_share(TOUCHED, lambda _: Whereabouts({0: 1.0}, 1.0), (1,)) == 0.0
    assert local_share((), lambda _: Whereabouts(HALVES, 1.0)) == -1.0


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_what_it_keeps_and_loses(form: str) -> None:
    text = export_plan(plan(), form)
    bound = "every thread" in kept(text)
    assert f"{70 if bound else 80} of 97 % local" in kept(text)
    assert bound == (form in ("omp", "gomp", "kmp", "rankfile", "openmpi", "hydra", "slurm"))
    assert "1 region of memory" in text.split("lost: ")[1]
    old = export_plan(plan(touched=()), form)
    assert "not known" in kept(old)


@pytest.mark.parametrize("form", FORMS)
def test_on_one_node_nothing_of_nodes_is_lost(form: str) -> None:
    base = plan()
    (region,) = base.memory
    home = msgspec.structs.replace(region, runs=(Run(offset=0, bytes=1 << 20, node=0),))
    whole = [msgspec.structs.replace(one, node=0, cpus=(0, 1, 2, 3)) for one in base.threads]
    bound = [msgspec.structs.replace(one, node=0, cpus=(at,)) for at, one in enumerate(base.threads)]
    for threads, what in (whole, "nothing"), (bound, "which thread is on which cpu"):
        there = msgspec.structs.replace(base, threads=tuple(threads), memory=(home,))
        text = export_plan(there, form)
        said = text.split("lost: ")[1]
        assert said.startswith("nothing" if "every thread" in kept(text) else what), form


def test_more_that_is_local_than_by_the_plan_is_no_part_of_it() -> None:
    base = plan()
    low = msgspec.structs.replace(base, predicted=msgspec.structs.replace(base.predicted, local_share=0.5))
    assert kept(export_plan(low, "taskset")).endswith(": 80 % local, by the plan 50")


@pytest.mark.parametrize("form", ["numactl", "hwloc", "systemd"])
def test_memory_is_interleaved_where_the_planner_expects_more_of_it(form: str) -> None:
    text = export_plan(plan(costs=INTERLEAVED), form)
    assert "interleave" in text.partition("kept")[0] + text.partition("[Service]")[2]
    assert kept(text) == "one cpuset for all threads, memory interleaved over nodes 0,1: 50 of 97 % local"
    assert "nterleave" not in export_plan(plan(), form)


def test_memory_is_not_interleaved_over_a_part_of_the_machine_where_first_touch_is_more_local() -> None:
    alone = plan(touched=(Touched(process="p0", node=0, own=1.0),), costs=INTERLEAVED)
    assert "--interleave=0,1" in export_plan(alone, "numactl"), "the plan has all nodes"
    part = msgspec.structs.replace(alone, machine=PlanMachine.of(Machine.load("3x4")))
    assert "--localalloc" in export_plan(part, "numactl")
    shared = plan(costs=INTERLEAVED)
    part = msgspec.structs.replace(shared, machine=part.machine)
    assert local_share(TOUCHED, lambda _: Whereabouts(HALVES, 1.0)) > 0.5
    assert "--localalloc" in export_plan(part, "numactl")
    others = (
        Touched(process="p0", node=0, own=0.0, others=((1, 1.0),)),
        Touched(process="p0", node=1, own=0.0),
    )
    part = msgspec.structs.replace(part, predicted=msgspec.structs.replace(part.predicted, touched=others))
    assert "--interleave=0,1" in export_plan(part, "numactl")


def test_no_memory_is_asked_of_a_node_that_has_none() -> None:
    """Its cpus touch the nearest node's first; launchers refuse a node without memory, or the kernel does."""
    content = Machine.load("3x4").to_dict()
    distances = [[10, 31, 31], [31, 10, 17], [31, 17, 10]]
    nodes = [
        {**node, "memory_bytes": size << 30} for node, size in zip(content["nodes"], (8, 0, 8), strict=True)
    ]
    machine = Machine.from_dict({**content, "nodes": nodes, "distances": distances})
    near = msgspec.structs.replace(plan(costs=INTERLEAVED), machine=PlanMachine.of(machine), memory=())
    assert "--cpuset-mems=0,2 " in export_plan(near, "podman")
    assert "--mem-bind=map_mem:0,0,2,2 " in export_plan(near, "slurm")
    assert "AllowedMemoryNodes=0,2\n" in export_plan(near, "systemd")
    domain = export_plan(near, "libvirt")
    assert (
        "<memnode cellid='1' mode='strict' nodeset='2'/>" in domain and "<cell id='1' cpus='2-3' " in domain
    )
    ranked = msgspec.structs.replace(plan("r0", "r1"), machine=near.machine, memory=())
    assert 'echo 2 >"$group"/r1/cpuset.mems' in export_plan(ranked, "cgroup")
    # Bound, only the first node's threads find local what they touched first: 0.2 + 0.1 of 1.
    assert kept(export_plan(near, "omp")).endswith("30 of 97 % local")
    assert "which thread is on which node" in export_plan(near, "taskset")
    one = msgspec.structs.replace(near, threads=near.threads[2:])
    assert "NUMAPolicy=preferred\nNUMAMask=2\n" in export_plan(one, "systemd")


@pytest.mark.parametrize("form", ["slurm", "openmpi", "hydra", "rankfile"])
def test_that_threads_become_copies_of_the_program_is_said(form: str) -> None:
    assert "this starts it 4 times" in export_plan(plan(), form)
    assert "starts it" not in export_plan(plan("r0", "r1"), form)


def test_processes_have_a_set_each_where_the_form_has_sets_of_processes() -> None:
    touched = (
        Touched(process="r0", node=0, own=0.5),
        Touched(process="r1", node=1, own=0.4, others=((0, 0.1),)),
    )
    ranked = plan("r0", "r1", touched=touched)
    for form in ("rankfile", "openmpi", "hydra", "slurm", "cgroup", "kubernetes", "nri"):
        words = (
            "one cpuset for the threads of each process, memory where it is touched first: 90 of 97 % local"
        )
        assert kept(export_plan(ranked, form)) == words
    assert "user:0+1,4+5" in export_plan(ranked, "hydra")
    assert kept(export_plan(ranked, "taskset")).startswith("one cpuset for all threads")
    with pytest.raises(UsageError, match="several processes"):
        export_plan(ranked, "omp")


def test_names_of_a_plan_from_elsewhere_stay_names() -> None:
    """A shell, YAML or XML reads no words of a plan as its own."""
    bad = plan('p0"; rm -rf "$HOME', "r1\n---\nkind: Pod")
    app = msgspec.structs.replace(
        bad.app, executable="a b--><x/>\n[Service]", argv=("a\nExecStart=/bin/false", "'")
    )
    bad = msgspec.structs.replace(bad, app=app)
    shell = export_plan(bad, "cgroup")
    assert "/'p0\"; rm -rf \"$HOME'/cpuset.cpus" in shell
    for form in ("systemd", "libvirt", "kubernetes", "nri", "podman"):
        text = export_plan(bad, form)
        assert "\nExecStart" not in text or form == "podman"
        assert "<x/>" not in text and text.count("\n---\n") == (form in ("kubernetes", "nri"))
    assert "podman create --name a-b----x---" in export_plan(bad, "podman")


def test_a_plan_says_of_its_groups_only_what_it_lists() -> None:
    text = plan(touched=(Touched(process="p0", node=0, own=0.5, others=((3, 0.5),)),)).to_json()
    with pytest.raises(UsageError, match="touched"):
        Plan.from_json(text)
    assert Plan.from_json(plan().to_json()).predicted.touched == TOUCHED
