"""The command nmap as users call it: answers, exit codes, errors, and the launchers that read exports."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from numaplan.common import UsageError
from numaplan.mapper import Plan, evaluate
from numaplan.mapper.commands.main import is_scanner_call, main
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.system
NMAP = Path(sys.executable).parent / "nmap"


def nmap(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run nmap in a folder."""
    return subprocess.run(
        [NMAP, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with comm.csv (threads i and i+4 talk) and loads.csv."""
    comm = np.ones((8, 8)) - np.eye(8)
    for thread in range(4):
        comm[thread, thread + 4] = comm[thread + 4, thread] = 100
    np.savetxt(tmp_path / "comm.csv", comm, delimiter=",")
    np.savetxt(tmp_path / "loads.csv", [1.0, 2, 3, 4, 4, 3, 2, 1])
    return tmp_path


MATRICES = ("--comm", "comm.csv", "--loads", "loads.csv")


def test_plan_show_diff_export(folder: Path) -> None:
    done = nmap(folder, "plan", *MATRICES, "--machine", "4x2")
    assert done.returncode == 0, done.stderr
    assert "remote communication" in done.stdout and "compact" in done.stdout
    plan = Plan.load(folder / "plan.json")
    nodes = [thread.node for thread in plan.threads]
    assert all(nodes[thread] == nodes[thread + 4] for thread in range(4))
    assert set(plan.predicted.baselines) == {"compact", "scatter"}
    assert plan.predicted.remote_comm == 24
    assert plan.predicted.lower_bound <= 24
    assert sorted(thread.cpus[0] for thread in plan.threads) == list(range(8))
    before = (folder / "plan.json").read_bytes()
    nmap(folder, "plan", *MATRICES, "--machine", "4x2")
    assert (folder / "plan.json").read_bytes() == before  # nothing changes without cause
    said = json.loads(nmap(folder, "plan", *MATRICES, "--machine", "4x2", "--json").stdout)
    assert said["schema"] == "numaplan/planned/1" and said["output"] == "plan.json"
    assert said["predicted"]["remote_comm"] == 24 and said["threads"] == 8
    shown = nmap(folder, "show", "plan.json")
    assert shown.returncode == 0 and "node 3" in shown.stdout
    nmap(folder, "plan", *MATRICES, "--machine", "4x2", "--method", "compact", "-o", "other.json")
    changed = nmap(folder, "diff", "plan.json", "other.json")
    assert changed.returncode == 0 and "remote_share" in changed.stdout


def test_compare_json(folder: Path) -> None:
    done = nmap(folder, "compare", *MATRICES, "--machine", "2x4", "--json")
    answer = json.loads(done.stdout)
    assert answer["schema"] == "numaplan/compare/1"
    rows = {(row["method"], row["objective"]): row for row in answer["methods"]}
    comm = np.loadtxt(folder / "comm.csv", delimiter=",")
    for row in rows.values():
        costs = evaluate(comm, np.loadtxt(folder / "loads.csv"), "2x4", row["nodes"])
        assert costs.remote_comm == pytest.approx(row["remote_comm"])
        assert costs.hop_cost == pytest.approx(row["hop_cost"])
        assert row["seconds"] >= 0
    best = rows["best", "remote"]["remote_comm"]
    assert all(best <= row["remote_comm"] for row in rows.values())
    assert nmap(folder, "compare", *MATRICES, "--machine", "2x4", "--methods", "best,cmlb").returncode == 0


def test_check_passes_fails_and_updates(folder: Path) -> None:
    nmap(folder, "plan", *MATRICES, "--machine", "4x2")
    nmap(folder, "plan", *MATRICES, "--machine", "4x2", "--method", "compact", "-o", "bad.json")
    good = nmap(folder, "check", *MATRICES, "--baseline", "plan.json", "--json")
    answer = json.loads(good.stdout)
    assert (good.returncode, answer["ok"], answer["regress"]) == (0, True, 0.0)
    assert answer["schema"] == "numaplan/check/1" and answer["best"]["remote_comm"] == 24
    bad = nmap(folder, "check", *MATRICES, "--baseline", "bad.json", "--junit", "out.xml")
    assert bad.returncode == 1 and "worse" in bad.stdout.splitlines()[0]
    assert len(bad.stdout.splitlines()) == 11
    suite = ElementTree.parse(folder / "out.xml").getroot()
    assert suite.get("failures") == "1" and suite.find("testcase/failure") is not None
    assert nmap(folder, "check", *MATRICES, "--baseline", "bad.json", "--update").returncode == 0
    assert nmap(folder, "check", *MATRICES, "--baseline", "bad.json").returncode == 0
    assert nmap(folder, "check", *MATRICES, "--baseline", "bad.json", "--max-regress", "x").returncode == 2


@pytest.mark.parametrize(
    "words,said",
    [
        (("plan",), "neither a trace nor --comm"),
        (("plan", "none.db"), "none.db: No such file"),
        (("plan", "loads.csv"), "not a trace"),
        (("plan", *MATRICES), "a matrix does not say for which machine"),
        (("plan", *MATRICES, "--machine", "9z"), "9z: no such machine"),
        (("plan", *MATRICES, "--machine", "2x4", "--method", "magic"), "unknown method 'magic'"),
        (("plan", *MATRICES, "--machine", "2x4", "--objective", "speed"), "unknown objective"),
        (("plan", *MATRICES, "--machine", "2x4", "--nodes", "7"), "no node 7"),
        (("plan", *MATRICES, "--machine", "2x4", "--without-cpus", "0-9"), "no cpu 8"),
        (("plan", *MATRICES, "--machine", "2x4", "--without-cpus", "0-7"), "no cpu is left"),
        (
            ("plan", *MATRICES, "--machine", "2x4", "--without-cpus", "0-9999999999"),
            "not a list of cpus",
        ),
        (("plan", *MATRICES, "--machine", "2x4", "--without-cpus", "3-1"), "out of order"),
        (("plan", *MATRICES, "--machine", "2x4", "--tolerance", "nan"), "tolerance nan"),
        (("plan", *MATRICES, "--machine", "2x4", "--pin", "0.9=1"), "no thread 0.9"),
        (("plan", *MATRICES, "--machine", "2x4", "--pin", "0.1"), "give thread=node"),
        (("plan", *MATRICES, "--machine", "2x4", "--pin", "0.1=2"), "no node 2"),
        (("plan", *MATRICES, "--machine", "2x4", "--pin", "@none"), "none: No such file"),
        (("plan", *MATRICES, "--machine", "2x4", "--phases", "loads.csv"), "loads.csv: no phases"),
        (("plan", *MATRICES, "--machine", "2x4", "--beside", "loads.csv"), "loads.csv"),
        (("plan", "a.db", "--phases", "loads.csv"), "--phases goes with --comm"),
        (("plan", "a.db", "b.db"), "a.db: No such file"),
        (("plan", "--comm", "comm.csv", "--loads", "short.csv", "--machine", "2x4"), "2 loads for 8 threads"),
        (("plan", *MATRICES, "--machine", "2x4", "-o", "no/plan.json"), "no folder"),
        (("show", "loads.csv"), "loads.csv"),
        (("export", "plan.json", "--format", "omp"), "plan.json"),
        (("check", *MATRICES, "--baseline", "none.json"), "none.json"),
        (("-sS", "192.168.0.1"), "not the network scanner"),
        (("-p", "22", "host"), "not the network scanner"),
        (("10.0.0.0/8",), "not the network scanner"),
    ],
)
def test_misuse_is_one_line_and_exit_2(folder: Path, words: tuple[str, ...], said: str) -> None:
    (folder / "short.csv").write_text("1\n2\n")
    before = set(folder.iterdir())
    done = nmap(folder, *words)
    assert done.returncode == 2
    assert done.stderr.startswith("nmap: error: ") and said in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""
    assert set(folder.iterdir()) == before  # no half-written file


def test_our_own_commands_are_no_scanner_calls() -> None:
    for words in (["plan", "-o", "10.0.0.1"], ["machine", "4x2"], ["--help"], ["-h"], ["--version"], []):
        assert not is_scanner_call(words)


def test_machine_json_is_a_machine(folder: Path) -> None:
    done = nmap(folder, "machine", "hpl-4x10", "--json")
    (folder / "machine.json").write_text(done.stdout)
    again = nmap(folder, "machine", "machine.json", "--json")
    assert json.loads(done.stdout) == json.loads(again.stdout)
    assert "node 3" in nmap(folder, "machine", "hpl-4x10").stdout


def local_plan(folder: Path) -> list[int]:
    """Make a plan for this machine; returns the cpu of each thread in order of creation."""
    done = nmap(folder, "plan", *MATRICES, "--machine", "local")
    assert done.returncode == 0, done.stderr
    return [thread.cpus[0] for thread in Plan.load(folder / "plan.json").threads]


@pytest.mark.parametrize("form", ["taskset", "numactl", "hwloc"])
def test_exported_command_lines_run(folder: Path, form: str) -> None:
    tool = {"taskset": "taskset", "numactl": "numactl", "hwloc": "hwloc-bind"}[form]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    cpus = sorted(set(local_plan(folder)))
    line = nmap(folder, "export", "plan.json", "--format", form).stdout.strip()
    probe = f"{sys.executable} -c 'import os; print(sorted(os.sched_getaffinity(0)))'"
    done = subprocess.run(
        line.replace("./app", probe), shell=True, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == cpus


@pytest.mark.parametrize("form", ["omp", "gomp"])
def test_libgomp_places_threads_as_exported(folder: Path, form: str) -> None:
    source = folder / "where.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <omp.h>\n#include <sched.h>\n#include <stdio.h>\n"
        "int main(void) {\n#pragma omp parallel\n#pragma omp critical\n"
        "{ cpu_set_t s; sched_getaffinity(0, sizeof s, &s); for (int c = 0; c < 1024; c++)"
        ' if (CPU_ISSET(c, &s)) printf("%d %d\\n", omp_get_thread_num(), c); }\n}\n'
    )
    built = subprocess.run(
        ["gcc", "-fopenmp", "-o", "where", source.name], cwd=folder, capture_output=True, check=False
    )
    if built.returncode:
        pytest.skip("no compiler with OpenMP")
    cpus = local_plan(folder)
    lines = nmap(folder, "export", "plan.json", "--format", form).stdout
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(
        f"{lines}./where", shell=True, cwd=folder, capture_output=True, text=True, check=True, env=environment
    )
    found = sorted(tuple(map(int, line.split())) for line in done.stdout.splitlines())
    assert found == list(enumerate(cpus))


@pytest.mark.parametrize(
    "form,said",
    [
        ("kmp", "explicit"),
        ("rankfile", "rank 7=localhost slot="),
        ("slurm", "--nodes=1 --ntasks=8 --cpu-bind=map_cpu:"),
    ],
)
def test_other_exports_name_every_cpu(folder: Path, form: str, said: str) -> None:
    nmap(folder, "plan", *MATRICES, "--machine", "2x4")
    text = nmap(folder, "export", "plan.json", "--format", form).stdout
    assert said in text
    assert nmap(folder, "export", "plan.json", "--format", "yaml").returncode == 2


def test_export_of_several_processes_by_rank(folder: Path) -> None:
    import msgspec

    from numaplan.mapper.plan_file.export import export_plan

    nmap(folder, "plan", *MATRICES, "--machine", "2x4")
    plan = Plan.load(folder / "plan.json")
    threads = tuple(
        msgspec.structs.replace(
            t, process=f"r{t.thread // 4}", path=f"0.{t.thread % 4}" if t.thread % 4 else "0"
        )
        for t in plan.threads
    )
    ranked = msgspec.structs.replace(plan, threads=threads)
    text = export_plan(ranked, "rankfile")
    assert text.count("rank ") == 2
    assert "mask_cpu" in export_plan(ranked, "slurm")
    with pytest.raises(UsageError, match="several processes"):
        export_plan(ranked, "omp")


def test_plan_with_pins_phases_and_beside_another(folder: Path) -> None:
    done = nmap(
        folder, "plan", *MATRICES, "--machine", "4x2", "--pin", "0=3", "--pin", "0.4=cpu:7", "-o", "a.json"
    )
    assert done.returncode == 0, done.stderr
    plan = Plan.load(folder / "a.json")
    assert plan.threads[0].node == 3 and plan.threads[4].cpus == (7,)
    checked = nmap(folder, "check", *MATRICES, "--baseline", "a.json", "--json")
    assert json.loads(checked.stdout)["regress"] == 0  # today's best is held to the same pins
    first = nmap(folder, "plan", *MATRICES, "--machine", "4x4", "-o", "first.json")
    second = nmap(
        folder, "plan", *MATRICES, "--machine", "4x4", "--beside", "first.json", "-o", "second.json"
    )
    assert first.returncode == second.returncode == 0, second.stderr
    cpus = [
        thread.cpus[0]
        for name in ("first", "second")
        for thread in Plan.load(folder / f"{name}.json").threads
    ]
    assert sorted(cpus) == list(range(16))
    # Threads 0..3 work in the first phase, 4..7 in the second; by communication i and i+4 belong together.
    rows = [[0, 1, 5, 1, 1, 1, 1, 0, 0, 0, 0], [1, 2, 5, 0, 0, 0, 0, 1, 1, 1, 1]]
    header = "start_ns,end_ns,weight," + ",".join(f"t{i}" for i in range(8))
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    (folder / "phases.csv").write_text("\n".join(lines) + "\n")
    words = ("--comm", "comm.csv", "--machine", "2x4", "--objective", "phased", "--phases", "phases.csv")
    done = nmap(folder, "plan", *words, "-o", "phased.json")
    assert done.returncode == 0, done.stderr
    plan = Plan.load(folder / "phased.json")
    nodes = [thread.node for thread in plan.threads]
    assert sum(nodes[:4]) == sum(nodes[4:]) == 2 and nodes[:4] == nodes[4:]
    assert plan.predicted.phase_imbalance == 0
    compared = nmap(folder, "compare", *words, "--json", "--methods", "best,compact")
    rows = json.loads(compared.stdout)["methods"]
    assert [row["objective"] for row in rows] == ["phased", "phased"]


@pytest.mark.parametrize(
    "content,said",
    [
        ("0", "0.0%"),
        ("1e-300", "100.0%"),
        ("1e300", "100.0%"),
    ],
)
def test_plans_of_matrices_that_are_hard(
    tmp_path: Path,
    content: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All entries alike, whatever they are; more threads than cpus, fewer than nodes, a single one."""
    monkeypatch.chdir(tmp_path)
    Path("memonly.json").write_text(
        '{"schema":"numaplan/machine/1","nodes":[{"id":1,"cpus":[0,1],"memory_bytes":9},{"id":5,"cpus":[4]},'
        '{"id":9,"memory_bytes":99}]}'
    )
    for threads, machine in ((1, "4x2"), (3, "4x2"), (10, "4x2"), (5, "1x2"), (7, "memonly.json")):
        lines = [",".join("0" if a == b else content for b in range(threads)) for a in range(threads)]
        Path("hard.csv").write_text("\n".join(lines) + "\n")
        for objective in ("balanced", "remote", "hop", "phased"):
            words = ["plan", "--comm", "hard.csv", "--machine", machine, "--objective", objective]
            assert main(words) == 0
            shown = capsys.readouterr()
            assert len(Plan.load("plan.json").threads) == threads
            if threads == 3:
                assert said in shown.out
