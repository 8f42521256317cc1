"""Gates: conditions on a comparison, such as `plan.local_share >= default.local_share + 0.05`.

A gate is a Python expression of a small part of Python: one comparison of two sides made of numbers,
`+ - * /`, parentheses and CONFIG.METRIC, the median over that configuration's runs; and `5%` is a number. A
minus needs a space before it where it follows a configuration's name, for names may hold one.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from numaplan.common import UsageError

from .metrics import both_texts
from .results import CACHE_METRICS, METRICS, ConfigResult

_CONFIG = re.compile(r"(?<![\w.])[a-z][a-z0-9-]*(?=\.)")
_PERCENT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)%")
_COMPARE: dict[type[ast.AST], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}
_COMBINE: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_MAX_TEXT = 1000
_EXAMPLE = "write for example 'plan.local_share >= default.local_share + 0.05'"


@dataclass(frozen=True)
class Verdict:
    """Whether a gate holds, and the values of its two sides; metric: of which they are amounts, if of one."""

    gate: str
    ok: bool
    left: float
    right: float
    metric: str = ""

    def __str__(self) -> str:
        left, right = both_texts(self.metric, self.left, self.right)
        return f"{self.gate}: {'holds' if self.ok else 'does not hold'} ({left} and {right})"


def gate_names(text: str, *, cached: bool = False) -> set[str]:
    """The configurations a gate speaks of; raises UsageError when it cannot be read.

    cached: whether caches are modelled, and with them what is counted.
    """
    names: set[str] = set()

    def note(config: str, metric: str) -> float:
        if metric in CACHE_METRICS and not cached:
            raise UsageError(f"gate {text!r}: {metric} is counted with caches only", "leave out --no-cache")
        names.add(config)
        return 1.0

    _evaluate(text, note)
    if not names:
        raise UsageError(f"gate {text!r}: it asks nothing of a configuration", _EXAMPLE)
    return names


def check_gate(text: str, configs: Mapping[str, ConfigResult]) -> Verdict:
    """Evaluate a gate; raises UsageError when it cannot be read or names what was not run."""

    def median(config: str, metric: str) -> float:
        if config not in configs:
            raise UsageError(f"gate {text!r}: {config!r} was not run", f"it can name {', '.join(configs)}")
        if configs[config].useless:
            return math.nan  # with which nothing compares
        return float(getattr(configs[config], metric).median)

    return _evaluate(text, median)


def _evaluate(text: str, median: Callable[[str, str], float]) -> Verdict:
    if len(text) > _MAX_TEXT:
        raise UsageError("the gate is too long", f"give at most {_MAX_TEXT} characters")
    try:
        match _parse(text):
            case ast.Compare(left, [sign], [right]) if type(sign) in _COMPARE:
                values = _value(left, median), _value(right, median)
                metrics = _metrics(left) | _metrics(right)
                metric = metrics.pop() if len(metrics) == 1 else ""
                return Verdict(text.strip(), _COMPARE[type(sign)](*values), *values, metric)
        raise ValueError("not one comparison")
    except ZeroDivisionError:
        raise UsageError(f"gate {text!r}: it divides by zero", _EXAMPLE) from None
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise UsageError(f"gate {text!r}: {error or 'it is nested too deeply'}", _EXAMPLE) from None


def _parse(text: str) -> ast.expr:
    python = _CONFIG.sub(lambda found: found[0].replace("-", "_"), " ".join(text.split()))
    try:
        return ast.parse(_PERCENT.sub(r"(\1/100)", python), mode="eval").body
    except SyntaxError as error:
        rest = (error.text or "")[error.offset - 1 :][:20] if error.offset else ""
        raise ValueError(f"{error.msg.partition('.')[0]} at {repr(rest) if rest else 'its end'}") from None


def _value(node: ast.expr, median: Callable[[str, str], float]) -> float:
    match node:
        case ast.Constant(int() | float() as value) if value is not True and value is not False:
            return float(value)
        case ast.BinOp(left, sign, right) if type(sign) in _COMBINE:
            values = _value(left, median), _value(right, median)
            if isinstance(sign, ast.Div) and not values[1] and _is_counted(right):
                return _by_none(values[0])
            return _COMBINE[type(sign)](*values)
        case ast.Attribute(ast.Name(config), metric) if metric in (*METRICS, *CACHE_METRICS):
            return median(config.replace("_", "-"), metric)
        case ast.Attribute(ast.Name(), metric):
            raise ValueError(f"no metric {metric!r}; there are {', '.join((*METRICS, *CACHE_METRICS))}")
    raise ValueError(f"{ast.unparse(node)[:20]!r} is not understood")


def _metrics(node: ast.expr) -> set[str]:
    """What a side is an amount of; an empty name among them: of none, as a quotient of two amounts is."""
    match node:
        case ast.Attribute(_, metric):
            return {metric}
        case ast.BinOp(left, sign, right):
            ratio = isinstance(sign, ast.Div) and _is_counted(right)
            square = isinstance(sign, ast.Mult) and _is_counted(left) and _is_counted(right)
            return {""} if ratio or square else _metrics(left) | _metrics(right)
    return set()


def _is_counted(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Attribute) for part in ast.walk(node))


def _by_none(value: float) -> float:
    """Divided by a count of which there was none, as floats are: what was measured is not lost for it."""
    return math.copysign(math.inf, value) if value and not math.isnan(value) else math.nan
