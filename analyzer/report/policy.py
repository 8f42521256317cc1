"""What online policies decide by, as keys of the analysis document."""

from typing import Any

from numaplan.analyzer.performance import (
    dino_classes,
    misses_per_kilo_instructions,
    node_use,
    process_exclusivity,
    trace_roofline,
)
from numaplan.profiler import Trace


def policy_document(trace: Trace) -> dict[str, Any]:
    """Key `policy_inputs`: latency by thread and node, MPKI, exclusivity, 3DyRM; -1: not known."""
    intensity, performance, relative = trace_roofline(trace)
    use = node_use(trace)
    mpki = misses_per_kilo_instructions(trace)
    return {
        "policy_inputs": {
            "nodes": use.nodes,
            "samples_on_node": use.samples.tolist(),
            "latency": use.latency.tolist(),
            "node_latency": use.node_latency.tolist(),
            "mpki": mpki.tolist(),
            "dino_class": dino_classes(mpki),
            "exclusivity": process_exclusivity(trace),
            "roofline": {
                "intensity": intensity.tolist(),
                "performance": performance.tolist(),
                "relative": relative.tolist(),
            },
        }
    }
