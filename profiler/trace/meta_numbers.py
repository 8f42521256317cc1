"""Numbers in a trace's meta table: what they can be, when it is written and when it is read."""

import re
from collections.abc import Mapping

_WHOLE = "-?[0-9]{1,18}"
_FORMS = {
    **dict.fromkeys(
        ("duration_ns", "freq", "exit_code", "run", "footprint", "for_footprint", "for_llc"), _WHOLE
    ),
    **dict.fromkeys(("period", "rank", "ranks", "local_rank"), "[0-9]{1,12}"),
    "emulate.host_seconds": r"[0-9]{1,12}(\.[0-9]{1,9})?",
}


def wrong_number(meta: Mapping[str, object]) -> str:
    """What is impossible of the facts in `meta`; empty where nothing is."""
    for name, form in _FORMS.items():
        if not re.fullmatch(form, text := str(meta.get(name, "0"))):
            return f"{name} is {text[:40]!r}, which is impossible"
    return ""
