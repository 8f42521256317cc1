"""How things show themselves in a notebook: small HTML in which every text is escaped."""

from collections.abc import Iterable, Mapping, Sequence

from .console import in_page


def facts_html(title: str, facts: Mapping[str, object], notes: Iterable[str] = ()) -> str:
    """A title, a table of facts, and sentences."""
    rows = "".join(
        f'<tr><th style="text-align:left">{in_page(name)}</th>'
        f'<td style="text-align:left">{in_page(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    listed = "".join(f"<li>{in_page(note)}</li>" for note in notes)
    told = f"<ul>{listed}</ul>" if listed else ""
    return f"<div><strong>{in_page(title)}</strong><table>{rows}</table>{told}</div>"


def cells_html(rows: Sequence[Sequence[float]]) -> str:
    """A square of cells, darker where there is more; each value is a share of the greatest."""
    size = 8
    cells = "".join(
        f'<rect x="{size * x}" y="{size * y}" width="{size}" height="{size}" fill-opacity="{value:.2g}"/>'
        for y, row in enumerate(rows)
        for x, value in enumerate(row)
        if value >= 0.01
    )
    side = size * len(rows)
    frame = f'<rect width="{side}" height="{side}" fill="none" stroke="currentColor"/>'
    return f'<svg width="{side}" height="{side}" fill="#1f62a0">{cells}{frame}</svg>'
