"""plotly.js as far as a page needs it: a quarter of it draws bars, lines and heat maps, and is read faster.

The file that comes with plotly is a bundle. For each module it has a function, `var X=W((exports, module)=>
{…});`, which is called by its name where it is needed, and at the end a list of all kinds of charts, which
makes each of them ready. Kept are the kinds that are wanted, the modules that those call, and so on. Where
the bundle does not look like that, all of it is kept.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from importlib import resources

from numaplan.common import MachineLacksError

ALWAYS = "scatter"  # the kind that plotly cannot do without

# For who loads it as a module: a function that makes all and hands it on.
_WRAPPED = re.compile(
    r"\A(?P<licence>/\*.*?\*/\s*)\(.*?\(\) => \{\s*"
    r"(?P<inner>\"use strict\";var Plotly=.*)return Plotly;\s*\}\)\);?\s*\Z",
    re.DOTALL,
)
_MODULE = re.compile(r"(?<=[;}])var ([\w$]+)=([\w$]+)\((?=\(|[\w$]+=>)")
_KINDS = re.compile(r"\.register\(\[((?:[\w$]+\(\),)*[\w$]+\(\))\]\)")
_NAME = re.compile(r'\bname:"(\w+)"')
_MENTIONED = re.compile(r"(?<![\w$.])[\w$]+(?![\w$:])")
_CALLED = re.compile(r"(?<![\w$.])([\w$]+)\(\)")


def plotly_script(kinds: frozenset[str]) -> str:
    """For charts of these kinds, such as `bar`. Raises MachineLacksError."""
    try:
        script = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text("utf-8")
    except (ModuleNotFoundError, OSError, UnicodeDecodeError) as error:
        raise MachineLacksError(f"plotly.js is missing: {error}", "pip install plotly") from None
    return part_of(script, kinds - {ALWAYS}) or script


def part_of(script: str, kinds: Collection[str]) -> str:
    """The script for these kinds of charts alone; empty where it does not look as expected."""
    lists = list(_KINDS.finditer(script))
    before, modules = _modules(script)
    holding = [name for name, text in modules.items() if _KINDS.search(text)]
    if len(lists) != 1 or not holding:
        return ""
    every, last = lists[0][1], holding[0]
    wanted = _wanted(every.replace("()", "").split(","), modules, kinds)
    if wanted is None:
        return ""
    modules[last] = modules[last].replace(every, ",".join(f"{name}()" for name in wanted))
    kept = _needed(before, modules, last)
    return _unwrapped(before + "".join(text for name, text in modules.items() if name in kept))


def _unwrapped(script: str) -> str:
    """For a page, which does without: what is in a function, a browser reads twice."""
    found = _WRAPPED.match(script)
    return found["licence"] + found["inner"] if found else script


def _modules(script: str) -> tuple[str, dict[str, str]]:
    """What stands before all modules, and the text of each, the last one's to the script's end."""
    heads = list(_MODULE.finditer(script))
    makers = Counter(head[2] for head in heads).most_common(1)
    heads = [head for head in heads if head[2] == makers[0][0]]
    starts = [head.start() for head in heads] + [len(script)]
    return script[: starts[0]], {
        head[1]: script[start:end] for head, start, end in zip(heads, starts[:-1], starts[1:], strict=True)
    }


def _wanted(listed: Iterable[str], modules: Mapping[str, str], kinds: Collection[str]) -> list[str] | None:
    """Modules of the list that are of these kinds; None: not all are there."""
    of_kind: dict[str, str] = {}
    for name in listed:
        # Each hands on another one, which says its name.
        for inner in sorted(_MENTIONED.findall(modules.get(name, ""))):
            if said := _NAME.search(modules.get(inner, "")):
                of_kind.setdefault(said[1], name)
    return [of_kind[kind] for kind in sorted(kinds)] if of_kind.keys() >= set(kinds) else None


def _needed(before: str, modules: Mapping[str, str], last: str) -> set[str]:
    """Names of the modules that the last one calls, and those call, and so on."""
    # Some are made in a second way, and stand in the text of another.
    makers = set(_MENTIONED.findall(before))
    inner = [(head, name) for name, text in modules.items() for head in _MODULE.finditer(text)]
    holder = {head[1]: name for head, name in inner if head[2] in makers}
    holder |= {name: name for name in modules}
    kept: set[str] = set()
    todo = [last]
    while todo:
        name = todo.pop()
        if name not in kept:
            kept.add(name)
            todo += {holder[use] for use in _CALLED.findall(modules[name]) if use in holder}
    return kept
