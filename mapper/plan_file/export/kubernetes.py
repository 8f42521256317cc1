"""Kubernetes: a pod with cpus of its own, and the kubelet's settings that hand these out by node.

No pod can name its cpus. It asks for a number; the kubelet gives those that it does not keep for the system,
so what keeps all others gives the planned ones.
"""

from collections.abc import Mapping
from typing import Any

from numaplan.machine import format_list

from ..plan import Plan
from .documents import in_yaml
from .kept import lost, one_set, processes_bound, remarks
from .placement import (
    all_cpus,
    label,
    memory_nodes,
    nodes_of,
    placed_bytes,
    processes,
    program,
    spare_cpus,
)

LEAST_MIB = 256
KEPT_MIB, EVICTED_MIB = 1024, 100  # of memory, for the kubelet; together what it must reserve by node


def kubernetes(plan: Plan) -> str:
    """The pod, and the kubelet's configuration for the machine of the plan."""
    notes = pod_notes(
        plan,
        "kubectl apply -f the first document; the second is for the kubelet of the node (--config)",
        "which cpus (the kubelet picks them), which memory policy; the nodes are those of the cpus",
    )
    if set(all_cpus(plan)) & set(spare_cpus(plan)):
        notes.append(f"cpu {all_cpus(plan)[-1]} stays with the system, which must have one")
    return "\n".join(
        [remarks(notes), *in_yaml(pod(plan, {})), "---", *in_yaml(_kubelet(plan, one_node_each(plan)))]
    )


def pod_notes(plan: Plan, use: str, unsaid: str) -> list[str]:
    """What a form with a pod says: how to use it, what it keeps and loses, and what it does not say."""
    given = tuple(cpu for cpu in all_cpus(plan) if cpu not in spare_cpus(plan))
    return [
        use,
        processes_bound(plan) if len(processes(plan)) > 1 else one_set(plan, cpus=given),
        lost(plan),
        f"not said: {unsaid}",
        "nlaunch --plan in the container fits the plan to the cpus that it finds",
    ]


def containers(plan: Plan) -> dict[str, int]:
    """Name of a container for each process, and the whole cpus that it asks for."""
    taken = set(all_cpus(plan)) & set(spare_cpus(plan))
    own = processes(plan)
    if len(own) == 1:
        return {label(plan): max(len(all_cpus(plan)) - len(taken), 1)}
    return {label(plan, name): max(len(set(cpus) - taken), 1) for name, cpus in own.items()}


def one_node_each(plan: Plan) -> bool:
    """Whether no process is on several nodes."""
    return all(len(nodes_of(plan, cpus)) == 1 for cpus in processes(plan).values())


def pod(plan: Plan, annotations: Mapping[str, str]) -> dict[str, Any]:
    """Requests equal limits and cpus are whole: quality of service is Guaranteed."""
    own = containers(plan)
    mib = max(LEAST_MIB, -(-2 * placed_bytes(plan) // len(own) >> 20))
    said = {
        "numaplan/cpus": format_list(all_cpus(plan)),
        "numaplan/mems": format_list(memory_nodes(plan)),
        **annotations,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": label(plan), "annotations": said},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": name,
                    "image": f"{label(plan)}:latest",
                    "command": list(program(plan)),
                    "resources": {
                        "requests": {"cpu": str(cpus), "memory": f"{mib}Mi"},
                        "limits": {"cpu": str(cpus), "memory": f"{mib}Mi"},
                    },
                }
                for name, cpus in own.items()
            ],
        },
    }


def _kubelet(plan: Plan, aligned: bool) -> dict[str, Any]:
    first = min(node.id for node in plan.machine.nodes)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": format_list(spare_cpus(plan)),
        "topologyManagerPolicy": "single-numa-node" if aligned else "best-effort",
        "topologyManagerScope": "container",
        "memoryManagerPolicy": "Static",
        "kubeReserved": {"memory": f"{KEPT_MIB}Mi"},
        "evictionHard": {"memory.available": f"{EVICTED_MIB}Mi"},
        "reservedMemory": [{"numaNode": first, "limits": {"memory": f"{KEPT_MIB + EVICTED_MIB}Mi"}}],
    }
