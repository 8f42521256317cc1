"""What was found, for collectors of metrics: OpenMetrics text, as node exporter reads it from files."""

from collections import Counter
from collections.abc import Iterator

from ..find.findings import CPUS, KERNEL, MEMORY, Answer
from ..find.view import View

NAMES = tuple(one.__name__.replace("_", "-") for one in (*CPUS, *KERNEL, *MEMORY))
_HELP = {
    "findings": "Findings of numaplan look, by name; 0 where there is none.",
    "memory_bytes": "Memory of a process on a node, without page cache.",
    "busy_threads": "Busy threads of a process on a node.",
    "expected_local_share": "Share of a process's memory on the nodes of its threads, weighed by their time.",
    "node_free_bytes": "Free memory of a node.",
}


def metrics(view: View, answer: Answer) -> bytes:
    """The whole text, ended by # EOF."""
    lines: list[str] = []
    for name, text in _HELP.items():
        metric = f"numaplan_look_{name}"
        lines += [f"# TYPE {metric} gauge", f"# HELP {metric} {text}"]
        lines += [
            f"{metric}{{{_labels(labels)}}} {_number(value)}"
            for labels, value in _SAMPLES[name](view, answer)
        ]
    return ("\n".join([*lines, "# EOF"]) + "\n").encode()


Samples = Iterator[tuple[dict[str, str], float]]


def _findings(_view: View, answer: Answer) -> Samples:
    counts = Counter(finding.name for finding in answer.findings)
    for name in NAMES:
        yield {"finding": name}, counts[name]


def _memory(view: View, _answer: Answer) -> Samples:
    for work in view.works:
        for node, count in sorted(work.memory.items()):
            yield {"pid": str(work.process.pid), "name": work.process.name, "node": str(node)}, count


def _threads(view: View, _answer: Answer) -> Samples:
    for work in view.works:
        counts = Counter(busy.node for busy in work.threads)
        for node in view.machine.node_ids:
            yield {"pid": str(work.process.pid), "name": work.process.name, "node": str(node)}, counts[node]


def _local(view: View, _answer: Answer) -> Samples:
    for work in view.works:
        if work.threads and work.bytes:
            yield {"pid": str(work.process.pid), "name": work.process.name}, work.local


def _free(view: View, _answer: Answer) -> Samples:
    for node in view.machine.node_ids:
        yield {"node": str(node)}, view.free(node)


_SAMPLES = {
    "findings": _findings,
    "memory_bytes": _memory,
    "busy_threads": _threads,
    "expected_local_share": _local,
    "node_free_bytes": _free,
}


def _number(value: float) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
