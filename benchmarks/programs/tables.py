"""The rows as tables: what each placement costs, where its accesses go, and what the plan said before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .measuring import BASELINES, ONLINE
from .rows import Counted, Row
from .verdicts import Verdict, over_best

_CONFIGS = (*BASELINES, "plan", *ONLINE)
_NONE = "–"


@dataclass(frozen=True)
class Shown:
    """One table, as text."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def tables(rows: Sequence[Row]) -> list[Shown]:
    """Three tables a machine: costs, shares, and what is moved and how evenly."""
    machines = dict.fromkeys(row.machine for row in rows)
    shown = []
    for machine in machines:
        here = [row for row in rows if row.machine == machine and row.counted]
        if not here:
            continue
        configs = [name for name in _CONFIGS if any(name in row.counted for row in here)]
        shown.append(_costs(machine, here, configs))
        shown.append(_shares(machine, here, configs))
        shown.append(_evenness(machine, here, configs))
    return shown


def _costs(machine: str, rows: Sequence[Row], configs: list[str]) -> Shown:
    """Costs in ms, counted; in brackets what was predicted."""
    lines = []
    for row in rows:
        cells = [_cost(row, name) for name in configs]
        ratio = over_best(row)
        lines.append((row.program, row.kind, *cells, f"{ratio:.2f}" if ratio is not None else _NONE))
    title = f"{machine}: cost in ms of waiting (in brackets: predicted)"
    return Shown(title, ("program", "kind", *configs, "plan : best"), tuple(lines))


def _cost(row: Row, name: str) -> str:
    if name not in row.counted:
        return "failed" if name in row.failed else _NONE
    said = row.predicted.costs.get(name) if row.predicted else None
    alone = " alone" if name == "plan" and row.predicted and row.predicted.alone else ""
    expected = f" ({_ms(said)}{alone})" if said is not None else alone
    return f"{_ms(row.counted[name].cost)}{expected}"


def _ms(cost: float) -> str:
    return f"{cost / 1e6:.0f}" if cost >= 100e6 else f"{cost / 1e6:.1f}"


def _shares(machine: str, rows: Sequence[Row], configs: list[str]) -> Shown:
    lines = tuple((row.program, *(_both(row, name) for name in configs), _expected(row)) for row in rows)
    title = f"{machine}: local share in % of all accesses, and of those that reach memory"
    return Shown(title, ("program", *configs, "predicted"), lines)


def _expected(row: Row) -> str:
    said = row.predicted
    return f"{_percent(said.local)} {_percent(said.memory_local)}" if said else _NONE


def _both(row: Row, name: str) -> str:
    return _told(row, name, lambda one: f"{_percent(one.local)} {_percent(one.memory_local)}")


def _evenness(machine: str, rows: Sequence[Row], configs: list[str]) -> Shown:
    def told(one: Counted) -> str:
        return f"{one.lines / 1e3:.0f} {one.imbalance:.2f} {one.busiest_cpu:.2f}"

    lines = tuple((row.program, *(_told(row, name, told) for name in configs)) for row in rows)
    title = f"{machine}: thousand lines moved between nodes, busiest controller and busiest cpu over the mean"
    return Shown(title, ("program", *configs), lines)


def _told(row: Row, name: str, tell: Callable[[Counted], str]) -> str:
    return tell(row.counted[name]) if name in row.counted else _NONE


def _percent(share: float | None) -> str:
    return f"{100 * share:.0f}" if share is not None else _NONE


def not_counted(rows: Sequence[Row]) -> list[str]:
    """A line for each program, machine or configuration that there are no counts of, and why."""
    return [
        f"{row.program} on {row.machine}{', ' * bool(name)}{name}: {reason}"
        for row in rows
        for name, reason in row.failed.items()
    ]


def verdict_line(verdict: Verdict) -> str:
    """A demand and what was found, in one line."""
    met = {None: "not measured", True: "met", False: "not met"}[verdict.met]
    against = f" ({'; '.join(verdict.against)})" if verdict.against else ""
    return f"{met}: {verdict.asked}: {verdict.found}{against}"


def markdown(rows: Sequence[Row], judged: Sequence[Verdict]) -> str:
    """The tables, the verdicts and what is missing, for a page of the docs."""
    parts = []
    for shown in tables(rows):
        parts += [f"### {shown.title}", "", f"| {' | '.join(shown.head)} |", "|---" * len(shown.head) + "|"]
        parts += [f"| {' | '.join(line)} |" for line in shown.lines]
        parts.append("")
    parts += ["### What was asked", ""]
    parts += [f"- {verdict_line(verdict)}" for verdict in judged]
    if missing := not_counted(rows):
        parts += ["", "### What failed or was left out", ""]
        parts += [f"- {line}" for line in missing]
    return "\n".join(parts) + "\n"
