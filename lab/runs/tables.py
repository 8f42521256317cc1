"""The lab's results for people: tables on a terminal, CSV for spreadsheets."""

import csv
import io
import sys
from shlex import join
from typing import TextIO

from numaplan.common import make_console, tell

from .metrics import metric_text
from .results import ConfigResult, LabCompare, LabRun, Spread

_COLUMNS = (
    ("local share", "local_share"),
    ("remote", "remote"),
    ("mean dist.", "mean_distance"),
    ("imbal.", "traffic_imbalance"),
    ("moved", "migrated"),
    ("hints", "hint_faults"),
    ("s", "seconds"),
)
_CACHE_COLUMNS = (
    ("cost", "cost"),
    ("local share", "local_share"),
    ("of memory", "memory_local_share"),
    ("imbal.", "memory_imbalance"),
    ("lines", "lines_between_nodes"),
    ("cpu", "busiest_cpu"),
    ("s", "seconds"),
)
_MAX_CPUS = 64  # a longer table is for --json or --counts


def show_run(run: LabRun, out: TextIO) -> None:
    """The table cpu x node of a run, then its costs."""
    from rich.table import Table
    from rich.text import Text

    console = make_console(file=out)
    console.print(
        Text.assemble("user accesses of ", (join(run.argv), "bold"), f" on {run.machine}, {run.config}"),
        soft_wrap=True,
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("cpu (node)", justify="right")
    for node in run.nodes:
        table.add_column(f"node {node}", justify="right")
    rows = list(zip(run.cpus, run.cpu_nodes, run.accesses, strict=True))
    for cpu, home, accesses in rows[:_MAX_CPUS]:
        cells = [
            Text(f"{value:,}", "bold" if node == home else "")
            for node, value in zip(run.nodes, accesses, strict=True)
        ]
        table.add_row(f"{cpu} ({home})", *cells)
    console.print(table)
    if len(rows) > _MAX_CPUS:
        console.print(f"and {len(rows) - _MAX_CPUS} more cpus: see --counts or --json")
    for thread in run.threads or []:
        shares = ", ".join(f"node {n}: {v:,}" for n, v in zip(run.nodes, thread.accesses, strict=True) if v)
        places = " ".join(str(cpu) for cpu in thread.cpus)
        console.print(f"thread {thread.path} ({thread.name}) on cpus {places}: {shares}", soft_wrap=True)
    console.print(_costs(run), soft_wrap=True)
    if run.cached:
        console.print(_cache_costs(run), soft_wrap=True)


def _costs(run: LabRun) -> str:
    return "; ".join(
        [
            f"local share {run.local_share:.1%} of {run.local + run.remote:,}",
            f"remote {run.remote:,}",
            *([f"{run.polls:,} more by loops that only waited"] if run.polls else []),
            f"mean distance {run.mean_distance:.2f}",
            f"node imbalance {run.traffic_imbalance:.2f}",
            f"migrated {run.migrated:,} pages",
            f"hint faults {run.hint_faults:,}",
            f"{run.seconds:.2f} s in the guest",
        ]
    )


def _cache_costs(run: LabRun) -> str:
    assert isinstance(run.costs, dict) and isinstance(run.memory_accesses, list)
    parts = ", ".join(f"{name.removesuffix('_ns')} {value / 1e6:,.1f}" for name, value in run.costs.items())
    return "; ".join(
        [
            f"cost {sum(run.costs.values()) / 1e6:,.1f} ms of waiting ({parts})",
            f"{sum(map(sum, run.memory_accesses)):,} reached memory, {run.memory_local_share:.1%} locally",
            f"{run.lines_between_nodes:,} lines moved between nodes",
            f"busiest memory {run.memory_imbalance:.2f} and cpu {run.busiest_cpu:.2f} of the mean",
        ]
    )


def show_compare(result: LabCompare, out: TextIO) -> None:
    """One row a configuration: each metric's median, with the spread of the local share."""
    from rich.table import Table
    from rich.text import Text

    console = make_console(file=out)
    runs = max((len(config.runs) for config in result.configs.values()), default=0)
    repeats = f", medians of {runs} runs (least–most)" if runs > 1 else ""
    console.print(
        Text.assemble((join(result.argv), "bold"), f" on {result.machine}{repeats}"), soft_wrap=True
    )
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("config", no_wrap=True)
    for title in titles(result):
        table.add_column(title, justify="right", no_wrap=True)
    for name, config in result.configs.items():
        table.add_row(name, *metric_cells(config))
    console.print(table)
    for name, config in result.configs.items():
        if config.failed:
            count = "" if config.useless else f" in {config.failed} of {len(config.runs)} runs"
            console.print(f"{name} failed{count}: {config.problem()}", style="red", soft_wrap=True)


def metric_cells(config: ConfigResult) -> list[str]:
    """A configuration's metrics as text, in the order of `titles`; none where its program failed."""
    if config.useless:
        return ["failed", *("–" for _ in _columns(config)[1:])]
    texts = []
    for _, name in _columns(config):
        spread: Spread = getattr(config, name)
        text = metric_text(name, spread.median)
        if name == "local_share" and len(config.runs) > 1:
            text += f" ({100 * spread.min:.1f}–{100 * spread.max:.1f})"
        texts.append(text)
    return texts


def titles(result: LabCompare) -> list[str]:
    """Headings of `metric_cells`."""
    return [title for title, _ in _columns(next(iter(result.configs.values())))]


def _columns(config: ConfigResult) -> tuple[tuple[str, str], ...]:
    return _CACHE_COLUMNS if config.runs[0].cached else _COLUMNS


def counts_csv(run: LabRun) -> bytes:
    """`cpu,cpu_node,node,accesses`, one row a pair that had any."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["cpu", "cpu_node", "node", "accesses"])
    for cpu, home, accesses in zip(run.cpus, run.cpu_nodes, run.accesses, strict=True):
        writer.writerows(
            [cpu, home, node, value] for node, value in zip(run.nodes, accesses, strict=True) if value
        )
    return text.getvalue().encode()


def say(text: str) -> None:
    """Progress, where a person watches."""
    if sys.stderr.isatty():
        tell(f"nlab: {text}")
