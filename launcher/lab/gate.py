"""Gates: conditions on a comparison, such as `plan.local_share >= default.local_share + 0.05`.

    gate   = sum ("<" | "<=" | ">" | ">=" | "==") sum
    sum    = term (("+" | "-") term)*
    term   = factor (("*" | "/") factor)*
    factor = number ["%"] | CONFIG.METRIC | "(" sum ")"

CONFIG.METRIC is the median over that configuration's runs. A minus needs a space before it where it follows a
name, for names may hold one.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from numaplan.common import UsageError
from numaplan.launcher.lab.results import METRICS, ConfigResult

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?P<percent>%)?"
    r"|(?P<name>[a-z][a-z0-9-]*\.[a-z_]+)|(?P<sign><=|>=|==|[<>+\-*/()]))"
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_MAX_TEXT = 1000


@dataclass(frozen=True)
class Verdict:
    """Whether a gate holds, and the values of its two sides."""

    gate: str
    ok: bool
    left: float
    right: float

    def __str__(self) -> str:
        return f"{self.gate}: {'holds' if self.ok else 'does not hold'} ({self.left:g} and {self.right:g})"


def gate_names(text: str) -> set[str]:
    """The configurations a gate speaks of; raises UsageError when it cannot be read."""
    tokens = _tokens(text)
    _Reader(text, tokens, lambda _name: 1.0).gate()
    return {token.partition(".")[0] for kind, token in tokens if kind == "name"}


def check_gate(text: str, configs: Mapping[str, ConfigResult]) -> Verdict:
    """Evaluate a gate; raises UsageError when it cannot be read or names what was not run."""

    def look_up(name: str) -> float:
        config, _, metric = name.partition(".")
        if config not in configs:
            raise UsageError(f"gate {text!r}: {config!r} was not run", f"it can name {', '.join(configs)}")
        return float(getattr(configs[config], metric).median)

    return _Reader(text, _tokens(text), look_up).gate()


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > _MAX_TEXT:
        raise UsageError("the gate is too long", f"give at most {_MAX_TEXT} characters")
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text.rstrip()):
        found = _TOKEN.match(text, position)
        if not found:
            raise _unreadable(text, f"{text[position:].strip()[:20]!r} is not understood")
        position = found.end()
        kind = found.lastgroup or ""
        if kind == "percent":
            tokens.append(("number", str(float(found["number"]) / 100)))
        else:
            tokens.append((kind, found[kind]))
        if kind == "name" and (metric := found["name"].partition(".")[2]) not in METRICS:
            raise _unreadable(text, f"no metric {metric!r}; there are {', '.join(METRICS)}")
    return tokens


def _unreadable(text: str, why: str) -> UsageError:
    return UsageError(
        f"gate {text!r}: {why}", "write for example 'plan.local_share >= default.local_share + 0.05'"
    )


class _Reader:
    """Recursive descent over the tokens of one gate."""

    def __init__(self, text: str, tokens: list[tuple[str, str]], look_up: Callable[[str], float]) -> None:
        self._text, self._tokens, self._look_up = text, tokens, look_up
        self._next = 0

    def gate(self) -> Verdict:
        left = self._sum()
        sign = self._take(*_COMPARE)
        if not sign:
            raise _unreadable(self._text, "no comparison")
        right = self._sum()
        if self._next < len(self._tokens):
            raise _unreadable(self._text, f"{self._tokens[self._next][1]!r} is one too many")
        return Verdict(self._text.strip(), _COMPARE[sign](left, right), left, right)

    def _take(self, *signs: str) -> str:
        """The next token if it is one of these signs, else nothing."""
        if self._next < len(self._tokens):
            kind, token = self._tokens[self._next]
            if kind == "sign" and token in signs:
                self._next += 1
                return token
        return ""

    def _sum(self) -> float:
        value = self._term()
        while sign := self._take("+", "-"):
            other = self._term()
            value = value + other if sign == "+" else value - other
        return value

    def _term(self) -> float:
        value = self._factor()
        while sign := self._take("*", "/"):
            other = self._factor()
            if sign == "/" and other == 0:
                raise _unreadable(self._text, "it divides by zero")
            value = value * other if sign == "*" else value / other
        return value

    def _factor(self) -> float:
        if self._take("("):
            value = self._sum()
            if not self._take(")"):
                raise _unreadable(self._text, "a ')' is missing")
            return value
        if self._next == len(self._tokens) or self._tokens[self._next][0] == "sign":
            raise _unreadable(self._text, "a number or CONFIG.METRIC is missing")
        kind, token = self._tokens[self._next]
        self._next += 1
        return float(token) if kind == "number" else self._look_up(token)
