"""What is counted of a run, as people read it: in tables and in gates alike."""

import math

_COUNT = ("{:,.{}f}", 0)
_RATIO = ("{:,.{}f}", 2)
_SHARE = ("{:.{}%}", 1)
_FORMS = {
    "local_share": _SHARE,
    "memory_local_share": _SHARE,
    "cost": ("{:,.{}f} ms", 1),
    "mean_distance": _RATIO,
    "traffic_imbalance": _RATIO,
    "memory_imbalance": _RATIO,
    "busiest_cpu": _RATIO,
    "seconds": _RATIO,
}
_UNITS = {"cost": 1e6}  # ns in a ms
_MORE_DIGITS = 6


def metric_text(name: str, value: float, more: int = 0) -> str:
    """An amount of a metric, of a count if its name is no other's; more: digits than usual."""
    form, digits = _FORMS.get(name, _COUNT)
    return "–" if math.isnan(value) else form.format(value / _UNITS.get(name, 1), digits + more)


def both_texts(name: str, left: float, right: float) -> tuple[str, str]:
    """Two amounts with the digits that it takes to tell them apart; name: empty for plain numbers."""
    texts = f"{left:g}", f"{right:g}"
    for more in range(_MORE_DIGITS if name else 0):
        texts = metric_text(name, left, more), metric_text(name, right, more)
        if left == right or texts[0] != texts[1]:
            break
    return texts
