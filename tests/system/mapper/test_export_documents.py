"""Exports that are files, and lines for containers, given to those who read them."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numaplan.machine import Machine, format_list, parse_list
from numaplan.mapper import Plan, PlanOptions, Workload, make_plan
from numaplan.mapper.plan_file.export import export_plan
from tests.support.commands import needs
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.system
yaml: Any = pytest.importorskip("yaml")


def plan_for(machine: str, threads: int = 4, processes: int = 1) -> Plan:
    comm = np.triu(np.random.default_rng(1).random((threads, threads)), 1)
    each = threads // processes
    names = [f"r{n // each}" if processes > 1 else "p0" for n in range(threads)]
    workload = Workload(
        threads=[(name, f"0.{n % each}" if n % each else "0") for n, name in enumerate(names)],
        comm=comm + comm.T,
        loads=np.ones(threads),
        sources={},
        argv=("/bin/true", "--why", "it's: [so] #1"),
    )
    return make_plan(workload, Machine.load(machine), PlanOptions()).plan


def read(words: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.mark.parametrize("machine", ["local", "4x2"])
def test_systemd_knows_every_line_of_the_drop_in(machine: str, tmp_path: Path) -> None:
    needs("systemd-analyze")
    unit = tmp_path / "app.service"
    unit.write_text("[Service]\nType=oneshot\nExecStart=/bin/true\n")
    folder = tmp_path / "app.service.d"
    folder.mkdir()
    text = export_plan(plan_for(machine, 2), "systemd")
    said = ""
    for more in ("", "NUMAPolicy=nowhere\n"):
        (folder / "numaplan.conf").write_text(text + more)
        found = read(["systemd-analyze", "verify", "--man=no", unit])
        said, before = found.stderr, said
        assert found.returncode == 0 or more
    assert before.strip() == "" and "NUMA policy" in said  # it does read the drop-in


@pytest.mark.parametrize("machine", ["4x2", "opteron-2x4"])
def test_libvirt_takes_the_domain(machine: str, tmp_path: Path) -> None:
    needs("virt-xml-validate")
    needs("xmllint")
    file = tmp_path / "app.xml"
    text = export_plan(plan_for(machine), "libvirt")
    file.write_text(text)
    assert read(["virt-xml-validate", file, "domain"]).returncode == 0
    file.write_text(text.replace("memnode cellid", "memnode cell"))
    assert read(["virt-xml-validate", file, "domain"]).returncode != 0


def test_podman_makes_a_container_with_the_cpus_and_nodes(tmp_path: Path) -> None:
    needs("podman")
    plan = plan_for("local", 2)
    line = export_plan(plan, "podman").partition("\n")[0]
    name = f"numaplan-test-{os.getpid()}"
    words = [word for word in shlex.split(line) if word != "${IMAGE:?}"]
    words[words.index("--name") + 1] = name
    command = words.index("/bin/true")
    words[command:command] = ["--rootfs", str(tmp_path)]
    made = read([*words])
    if made.returncode and "--cpuset" not in made.stderr:
        pytest.skip(f"podman can make no container here: {made.stderr.strip()}")
    try:
        (found,) = json.loads(read(["podman", "inspect", name]).stdout)
    finally:
        read(["podman", "rm", name])
    host = found["HostConfig"]
    cpus = sorted({cpu for thread in plan.threads for cpu in thread.cpus})
    assert Machine.load("local").cpus[: len(cpus)] == tuple(cpus)
    assert (host["CpusetCpus"], host["CpusetMems"]) == (
        format_list(cpus),
        format_list({t.node for t in plan.threads}),
    )
    assert found["Config"]["Cmd"] == list(plan.app.argv)


# The published types of what is written: name of a field, and what it holds.
QUANTITIES = {"cpu": str, "memory": str}
RESOURCES = {"requests": QUANTITIES, "limits": QUANTITIES}
CONTAINER = {"name": str, "image": str, "command": [str], "resources": RESOURCES}
POD = {
    "apiVersion": str, "kind": str,
    "metadata": {"name": str, "annotations": {str: str}},
    "spec": {"restartPolicy": str, "containers": [CONTAINER]},
}  # fmt: skip
KUBELET = {
    "apiVersion": str, "kind": str,
    "cpuManagerPolicy": str, "reservedSystemCPUs": str,
    "topologyManagerPolicy": str, "topologyManagerScope": str, "memoryManagerPolicy": str,
    "kubeReserved": {str: str}, "evictionHard": {str: str},
    "reservedMemory": [{"numaNode": int, "limits": {str: str}}],
}  # fmt: skip
BALLOON = {"name": str, "minBalloons": int, "maxBalloons": int, "minCPUs": int, "maxCPUs": int}
BALLOONS = {
    "apiVersion": str, "kind": str,
    "metadata": {"name": str, "namespace": str},
    "spec": {
        "availableResources": {"cpu": str}, "reservedResources": {"cpu": str},
        "pinCPU": bool, "pinMemory": bool, "balloonTypes": [BALLOON],
    },
}  # fmt: skip


def fits(value: Any, schema: Any) -> bool:
    """Whether every field is one of the schema's, of its type."""
    if isinstance(schema, type):
        return type(value) is schema
    if isinstance(schema, list):
        return type(value) is list and all(fits(item, schema[0]) for item in value)
    if set(schema) == {str}:
        return all(type(key) is str and type(item) is schema[str] for key, item in value.items())
    return set(value) == set(schema) and all(fits(item, schema[key]) for key, item in value.items())


@pytest.mark.parametrize("form", ["kubernetes", "nri"])
def test_pods_are_valid_by_the_published_schema(form: str) -> None:
    reader: Any = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate (PyPI, 22 MB)")
    documents = list(yaml.safe_load_all(export_plan(plan_for("2x8", 8, 2), form)))
    (pod,) = (one for one in documents if one["kind"] == "Pod")
    reader.validate(pod, reader.latest_version(), strict=True)
    pod["spec"]["containers"][0]["resource"] = {}
    with pytest.raises(reader.ValidationError):
        reader.validate(pod, reader.latest_version(), strict=True)


@pytest.mark.parametrize("machine,processes", [("4x2", 1), ("2x8", 1), ("2x8", 2)])
@pytest.mark.parametrize("form", ["kubernetes", "nri"])
def test_kubernetes_objects_have_their_fields(form: str, machine: str, processes: int) -> None:
    plan = plan_for(machine, 8, processes)
    first, second = yaml.safe_load_all(export_plan(plan, form))
    pod, other = (first, second) if form == "kubernetes" else (second, first)
    assert fits(pod, POD) and (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    containers = pod["spec"]["containers"]
    assert len(containers) == processes and containers[0]["command"] == list(plan.app.argv)
    for one in containers:  # quality of service Guaranteed, with cpus of its own
        assert one["resources"]["requests"] == one["resources"]["limits"]
        assert one["resources"]["limits"]["cpu"].isdecimal()
    asked = sum(int(one["resources"]["limits"]["cpu"]) for one in containers)
    assert asked == 8 - (machine == "4x2")  # the system keeps one, where the plan has all
    if form == "kubernetes":
        assert fits(other, KUBELET) and other["kind"] == "KubeletConfiguration"
        assert other["cpuManagerPolicy"] == "static" and other["memoryManagerPolicy"] == "Static"
        assert other["topologyManagerPolicy"] in ("single-numa-node", "best-effort")
        assert _cpus(other["reservedSystemCPUs"]) == 16 - 8 if machine == "2x8" else 1
        return
    assert fits(other, BALLOONS) and other["apiVersion"] == "config.nri/v1alpha1"
    names = {kind["name"] for kind in other["spec"]["balloonTypes"]}
    said = pod["metadata"]["annotations"]
    place = "balloon.balloons.resource-policy.nri.io/container."
    assert {said[place + one["name"]] for one in containers} == names
    assert _cpus(other["spec"]["availableResources"]["cpu"].removeprefix("cpuset:")) == (
        16 if machine == "2x8" else 8
    )


def _cpus(text: str) -> int:
    return len(parse_list(text, "cpus"))
