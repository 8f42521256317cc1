"""Parameters of policies: dataclass fields that users set by the papers' names, as `delta_perf=0.7`."""

from collections.abc import Mapping
from dataclasses import Field, field, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar

from numaplan.common import UsageError


class _HasFields(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Parametrised = TypeVar("Parametrised", bound=_HasFields)


def parameter(default: Any, about: str, *, paper: str = "", low: float = 0.0, high: float = 1e9) -> Any:
    """A field with its meaning, the name the paper gives it (where that differs), and its bounds."""
    return field(default=default, metadata={"about": about, "paper": paper, "low": low, "high": high})


def period(seconds: float) -> Any:
    """The field of the time between two decisions, the papers' T."""
    return parameter(seconds, "seconds between decisions", paper="T", low=0.01, high=86_400.0)


def parameter_names(policy: type[_HasFields] | _HasFields) -> dict[str, Field[Any]]:
    """Names users may set -> field, the paper's name first; case does not matter when setting."""
    return {item.metadata["paper"] or item.name: item for item in fields(policy) if "about" in item.metadata}


def with_settings(policy: Parametrised, settings: Mapping[str, str]) -> tuple[Parametrised, set[str]]:
    """The policy with those settings that it knows (by lower-case name), and their names."""
    changes: dict[str, Any] = {}
    used: set[str] = set()
    for name, item in parameter_names(policy).items():
        for key in {name.lower(), item.name.lower()} & settings.keys():
            changes[item.name] = _value(name, item, settings[key])
            used.add(key)
    return (replace(policy, **changes) if changes else policy), used


def _value(name: str, item: Field[Any], text: str) -> Any:
    kind: Any = type(item.default)
    try:
        value = (
            {"yes": True, "no": False, "true": True, "false": False}[text.lower()]
            if kind is bool
            else kind(text)
        )
    except (ValueError, KeyError):
        word = {int: "a whole number", float: "a number", bool: "yes or no"}[kind]
        raise UsageError(f"{name}={text}: not {word}", f"its default is {item.default}") from None
    low, high = item.metadata["low"], item.metadata["high"]
    if not low <= value <= high:  # also refuses NaN
        hint = f"give {low:g} to {high:.9g}; its default is {item.default}"
        raise UsageError(f"{name}={text} is out of range", hint)
    return value
