"""A comparison as other tools want it: JUnit XML for CI, one self-contained HTML page for people."""

from collections.abc import Sequence
from string import Template

from numaplan.common import JUnitCase, in_page, junit_xml

from .gate import Verdict
from .results import LabCompare, LabRun
from .tables import metric_cells, titles


def junit(result: LabCompare, verdicts: Sequence[Verdict]) -> bytes:
    """A test suite: one case a configuration (its program must exit with 0), one a gate."""
    cases = []
    for name, config in result.configs.items():
        cases.append(
            JUnitCase("nlab.run", name, config.problem(), seconds=sum(run.seconds for run in config.runs))
        )
    cases += [
        JUnitCase("nlab.gate", verdict.gate, "" if verdict.ok else str(verdict), seconds=0.0)
        for verdict in verdicts
    ]
    return junit_xml("nlab compare", cases, in_suites=True)


_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title><style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1c2430; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #dde2ea; }
th:first-child, td:first-child { text-align: left; }
.bar { width: 9rem; background: #e3742f; height: .9rem; } .bar div { background: #2a7f62; height: 100%; }
.maps { display: flex; flex-wrap: wrap; gap: 2rem; } .maps td { min-width: 3rem; }
.local { outline: 2px solid #2a7f62; outline-offset: -2px; } .bad { color: #b3261e; } code { font-size: .95em; }
</style></head><body>
<h1>$title</h1>
<p><code>$command</code></p>
<p>User accesses counted in a guest with these nodes. Bars: local (green) and remote share of the accesses.</p>
<table><thead><tr><th>configuration</th><th>local and remote</th>$heads</tr></thead><tbody>$rows</tbody></table>
$gates
<h2>Which cpu touched which node</h2>
<p>Accesses in millions; the outlined cells are local. First run of each configuration.</p>
<div class="maps">$maps</div>
</body></html>
""")  # noqa: E501


def html(result: LabCompare, verdicts: Sequence[Verdict]) -> bytes:
    """The page: a table with bars, the gates, and a map of accesses a configuration."""
    rows = []
    for name, config in result.configs.items():
        share = 100 * config.local_share.median
        bar = f'<div class="bar" title="{share:.1f} % local"><div style="width:{share:.2f}%"></div></div>'
        if config.failed:
            bar = ("" if config.useless else bar) + f'<span class="bad">{in_page(config.problem())}</span>'
        values = "".join(f"<td>{in_page(cell)}</td>" for cell in metric_cells(config))
        rows.append(f"<tr><td>{in_page(name)}</td><td>{bar}</td>{values}</tr>")
    items = "".join(
        f'<li class="{"ok" if verdict.ok else "bad"}">{in_page(str(verdict))}</li>' for verdict in verdicts
    )
    page = _PAGE.substitute(
        title=in_page(f"Placement compared on {result.machine}"),
        command=in_page(" ".join(result.argv)),
        heads="".join(f"<th>{in_page(title)}</th>" for title in titles(result)),
        rows="".join(rows),
        gates=f"<h2>Gates</h2><ul>{items}</ul>" if verdicts else "",
        maps="".join(
            _map(name, run)
            for name, config in result.configs.items()
            for run in [one for one in config.runs if not one.failed][:1]
        ),
    )
    return page.encode()


def _map(name: str, run: LabRun) -> str:
    most = max((value for row in run.accesses for value in row), default=0) or 1
    head = "".join(f"<th>node {node}</th>" for node in run.nodes)
    lines = []
    for cpu, home, accesses in zip(run.cpus, run.cpu_nodes, run.accesses, strict=True):
        shades = "".join(
            _shaded(value, value / most, node == home)
            for node, value in zip(run.nodes, accesses, strict=True)
        )
        lines.append(f"<tr><td>cpu {cpu}</td>{shades}</tr>")
    return f"<div><h3>{in_page(name)}</h3><table><tr><th></th>{head}</tr>{''.join(lines)}</table></div>"


def _shaded(value: int, weight: float, local: bool) -> str:
    kind = " class=local" if local else ""
    return f'<td{kind} style="background:rgba(42,90,160,{weight * 0.6:.3f})">{value / 1e6:.2f}</td>'
