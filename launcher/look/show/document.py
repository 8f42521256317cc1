"""What was found, for programs: `numaplan/look/1`."""

from typing import Any

import msgspec

from ..find.findings import Answer
from ..find.view import View, Work

SCHEMA = "numaplan/look/1"


def document(view: View, answer: Answer) -> bytes:
    """The JSON document of a look; its keys stay."""
    system = view.after.system
    return msgspec.json.encode(
        {
            "schema": SCHEMA,
            "seconds": round(view.seconds, 3),
            "matters": bool(answer.findings) if answer.sure else None,
            "reason": answer.reason,
            "findings": [msgspec.to_builtins(finding) for finding in answer.findings],
            "nodes": [
                {"id": node.id, "cpus": list(node.cpus), "free_bytes": view.free(node.id)}
                for node in view.machine.nodes
            ],
            "idle_cpus": sorted(view.idle_cpus),
            "numa_balancing": system.balancing,
            "counters": {
                name: view.counted(name)
                for name in ("numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated")
            },
            "processes": [_process(work) for work in view.works],
        }
    )


def _process(work: Work) -> dict[str, Any]:
    process = work.process
    policies = [
        {"policy": part.policy, "kind": part.kind, "bytes": _by_node(part.nodes)}
        for part in (process.memory.parts if process.memory else ())
    ]
    return {
        "pid": process.pid,
        "name": process.name,
        "command": list(process.argv),
        "threads": len(process.threads),
        "cpu_share": round(work.ran, 3),
        "sampled": msgspec.to_builtins(work.sampled),
        "expected_local_share": round(work.local, 3) if work.threads and work.bytes else None,
        "memory_bytes": _by_node(work.memory),
        "memory_hidden": process.hidden,
        "memory": policies,
        "swapped_bytes": process.swapped,
        "cgroup": process.cgroup,
        "busy": [
            {
                "tid": busy.thread.tid,
                "name": busy.thread.name,
                "cpu": busy.thread.cpu,
                "node": busy.node,
                "cpus": list(busy.thread.cpus),
                "ran": round(busy.ran, 3),
                "waited": round(busy.waited, 3),
            }
            for busy in work.threads
        ],
    }


def _by_node(nodes: dict[int, int]) -> dict[str, int]:
    return {str(node): count for node, count in sorted(nodes.items())}
