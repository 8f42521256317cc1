"""NRI's balloons plugin: sets of cpus for containers, by a policy and a pod that asks for them."""

from typing import Any

from numaplan.machine import format_list

from ..plan import Plan
from .documents import in_yaml
from .kept import remarks
from .kubernetes import containers, pod, pod_notes
from .placement import all_cpus, label, spare_cpus

BALLOON = "balloon.balloons.resource-policy.nri.io/container."


def nri(plan: Plan) -> str:
    """The policy, which has the planned cpus to give, and the pod with a balloon for each container."""
    own = containers(plan)
    notes = pod_notes(
        plan,
        "both documents: kubectl apply -f; the first needs the plugin nri-resource-policy-balloons",
        "which process has which of the cpus, which memory policy; memory is on the cpus' nodes",
    )
    annotations = {BALLOON + name: name for name in own}
    return "\n".join([remarks(notes), *in_yaml(_policy(plan, own)), "---", *in_yaml(pod(plan, annotations))])


def _policy(plan: Plan, own: dict[str, int]) -> dict[str, Any]:
    spare = spare_cpus(plan)
    every = format_list({*all_cpus(plan), *spare})
    return {
        "apiVersion": "config.nri/v1alpha1",
        "kind": "BalloonsPolicy",
        "metadata": {"name": label(plan), "namespace": "kube-system"},
        "spec": {
            "availableResources": {"cpu": f"cpuset:{every}"},
            "reservedResources": {"cpu": f"cpuset:{format_list(spare)}"},
            "pinCPU": True,
            "pinMemory": True,
            "balloonTypes": [
                {"name": name, "minBalloons": 1, "maxBalloons": 1, "minCPUs": cpus, "maxCPUs": cpus}
                for name, cpus in own.items()
            ],
        },
    }
