"""What each export keeps of a plan: the local share that its comment expects beside what the lab counts.

Each form starts the program in a booted machine of 4 nodes with 2 cpus, as the text says: systemd as a
manager that starts a unit with the drop-in, Podman as a container. Forms whose program is not here are left
out.
NUMAPLAN_REPEAT: runs of each form (3); NUMAPLAN_FORMS: which, by comma.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shlex import join, quote
from statistics import median
from typing import Any

from benchmarks import ROOT
from numaplan.lab.guest.job import Job
from numaplan.lab.runs.counts import parse_counts
from numaplan.lab.runs.session import Request, Session, open_session
from numaplan.lab.runs.tasks import read_tasks
from numaplan.mapper import Plan
from numaplan.mapper.plan_file.export import export_plan

MACHINE = "4x2"
# Source, arguments, OpenMP's threads, and the objective: by time, who keep their memory are left alone.
PROGRAMS: dict[str, tuple[str, Sequence[str], int, str]] = {
    "stencil": ("examples/stencil.c", ("8", "4096", "600"), 8, "time"),
    "own parts": ("benchmarks/exports.c", ("64", "60"), 8, "balanced"),
    "own parts, 4 threads": ("benchmarks/exports.c", ("64", "60"), 4, "balanced"),
}
OPENMP = ("omp", "gomp")  # the compiler here is GNU's
FORMS = {
    "omp": "sh", "gomp": "sh", "taskset": "taskset", "numactl": "numactl", "hwloc": "hwloc-bind",
    "cgroup": "sh", "systemd": "systemctl", "podman": "podman",
}  # fmt: skip
SYSTEMD = """
place=/run/numaplan-units; mkdir -p /run/systemd/system $place/systemd/user/app.service.d $place/run
cp {folder}/app.service $place/systemd/user/; cp {folder}/text $place/systemd/user/app.service.d/numaplan.conf
XDG_RUNTIME_DIR=$place/run XDG_CONFIG_HOME=$place /lib/systemd/systemd --user --unit=app.service
true
"""
UNIT = """[Service]
Type=oneshot
WorkingDirectory={folder}
Environment=OMP_NUM_THREADS={threads}
ExecStart={command}
ExecStopPost=/bin/kill -KILL $MANAGERPID
"""
PODMAN = (
    "podman --cgroup-manager=cgroupfs --storage-driver=vfs --root /run/numaplan-pods"
    " --runroot /run/numaplan-run run"
    " --rm --network=none --ulimit host -v /usr:/usr -v /lib:/lib -v /lib64:/lib64"
    " -v {folder}:{folder} --env OMP_NUM_THREADS={threads} --rootfs {folder}/root "
)


def run() -> dict[str, Any]:
    """By program and form: the share that the export expects, and what was counted, in %."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for title, (source, arguments, threads, objective) in PROGRAMS.items():
            binary = folder / Path(source).stem
            subprocess.run(
                ["cc", "-O2", "-fopenmp", str(ROOT / source), "-lpthread", "-o", str(binary)], check=True
            )
            os.environ["OMP_NUM_THREADS"] = str(threads)
            command = [str(binary), *arguments]
            for form, row in _one(title, command, threads, objective, folder).items():
                results[f"{title}: {form}"] = row
    return results


def _one(title: str, command: list[str], threads: int, objective: str, folder: Path) -> dict[str, Any]:
    repeat = int(os.environ.get("NUMAPLAN_REPEAT", "3"))
    plan_file = folder / f"{title.replace(' ', '-')}.json"
    _plan(command, objective, folder / "trace.db", plan_file)
    plan = Plan.load(plan_file)
    wanted = [name for name in os.environ.get("NUMAPLAN_FORMS", "").split(",") if name] or list(FORMS)
    forms = [name for name in wanted if shutil.which(FORMS[name])]
    if "stencil" in title:
        forms = [name for name in forms if name not in OPENMP]
    rows: dict[str, Any] = {}
    request = Request(command, MACHINE, plan=str(plan_file))
    with open_session(request, lambda said: print(said, file=sys.stderr)) as session:
        for config, expected in (("default", plan.predicted.today), ("plan", plan.predicted)):
            shares = [100 * session.run(config).local_share for _ in range(repeat)]
            rows[config] = _row(100 * expected.local_share if expected else -1.0, shares)
            print(title, config, rows[config], file=sys.stderr)
        for form in forms:
            text = export_plan(plan, form)
            script = _script(form, text, command, threads, folder)
            shares = [_share(session, script, Path(command[0]).name, folder) for _ in range(repeat)]
            found = re.search(r"(\d+) of \d+ % local", text)
            rows[form] = _row(float(found[1]) if found else -1.0, shares)
            print(title, form, rows[form], file=sys.stderr)
    return rows


def _row(expected: float, shares: list[float]) -> dict[str, float]:
    return {"expected": expected, "counted": median(shares), "least": min(shares), "most": max(shares)}


def _plan(command: Sequence[str], objective: str, trace: Path, plan: Path) -> None:
    bin = Path(sys.executable).parent
    for words in (
        [bin / "nprof", "record", "--backend", "emulate", "--period", "100", "-o", trace, "--", *command],
        [bin / "nmap", "plan", trace, "--machine", MACHINE, "--objective", objective, "-o", plan],
    ):
        subprocess.run([*map(str, words)], check=True, stdout=subprocess.DEVNULL)


def _script(form: str, text: str, command: list[str], threads: int, folder: Path) -> str:
    """What starts the program in the guest as the export says."""
    (folder / "text").write_text(text)
    names = {"folder": folder, "threads": threads, "command": join(command)}
    if form == "systemd":
        (folder / "app.service").write_text(UNIT.format(**names))
        return SYSTEMD.format(**names)
    if form == "podman":
        for name in ("root/usr", "root/lib", "root/lib64", f"root/{folder}"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        line = text.partition("\n")[0].replace('"${IMAGE:?}" ', PODMAN.format(**names).partition(" run ")[2])
        start = PODMAN.partition(" run ")[0] + " run "
        return re.sub(r"^podman create --name \S+ ", start, line)
    return f"{text}\n{join(command)}" if form in OPENMP else text


def _share(session: Session, script: str, name: str, folder: Path) -> float:
    """The local share of the program alone, in %, whatever started it."""
    trace = folder / "births"
    job = Job("/bin/sh", ["sh", "-c", script], os.environ, str(folder), 300.0)
    outcome = session.guest.run(job, -1, sys.stderr.fileno(), sys.stderr.fileno(), trace)
    machine = session.guest.shape.machine
    counts = parse_counts(outcome.counts, len(machine.cpus), len(machine.nodes))
    row_of = {node.id: row for row, node in enumerate(machine.nodes)}
    local = total = 0
    for task in read_tasks(trace, counts):
        if task.name != name[:15]:
            continue
        if task.exec_stages:  # what it was before it became the program
            task.first_stage = task.exec_stages[-1]
        accesses = task.counted(counts)[:, : counts.nodes]
        total += int(accesses.sum())
        local += sum(
            int(accesses[at, row_of[machine.node_of_cpu[cpu]]]) for at, cpu in enumerate(machine.cpus)
        )
    if outcome.exit_code or not total:
        raise RuntimeError(f"{quote(script)} ended with {outcome.exit_code}, {total} accesses of {name}")
    return 100 * local / total
