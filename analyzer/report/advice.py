"""What to do about a program's placement, as the terminal, the page and `--json` have it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from numaplan.common import in_page, print_point

from .units import in_time

if TYPE_CHECKING:
    from rich.console import Console

LITTLE = 0.02  # of all accesses
MOST_SHOWN = 6  # on a terminal


class Change(msgspec.Struct, frozen=True):
    """A share without the advice, and with it."""

    before: float
    after: float


class Advice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to do.

    action: in a few words; evidence: what in the trace speaks for it; change: the command, or the change of
    the code; gain_ns: expected waiting of all threads that it saves, gain: as a share of all, None: nobody
    can tell beforehand; local_share: of accesses, memory_share: of those that reach memory; counted:
    local_share as the lab counted it, and counted_gain: share of the cost that it saved there, if its caches
    were modelled.
    """

    kind: str
    action: str
    evidence: str
    change: str
    gain_ns: float | None
    gain: float | None
    local_share: Change | None = None
    memory_share: Change | None = None
    counted: Change | None = None
    counted_gain: float | None = None

    @property
    def refuted(self) -> bool:
        """Whether the lab counted that it does harm."""
        if self.counted_gain is not None:
            return self.counted_gain <= 0
        return self.counted is not None and self.counted.after < self.counted.before - LITTLE


class Advised(msgspec.Struct, frozen=True):
    """The advice, what gains most first; reason: why there is none, or no more."""

    advice: Sequence[Advice] = ()
    reason: str = ""


def advice_document(advised: Advised) -> dict[str, Any]:
    """The keys that `nmap analyze --json` has of it."""
    listed = [{"gain": one.gain, **msgspec.to_builtins(one)} for one in advised.advice]
    return {"advice": listed, **({"no_advice": advised.reason} if advised.reason else {})}


def gain_words(advice: Advice) -> str:
    """What it is expected to gain: `-47% waiting (229 ms), 42% → 96% local; counted: 41% → 95%`."""
    if advice.gain is None or advice.gain_ns is None:
        words = ["gain unknown"]
    else:
        words = [f"-{advice.gain:.0%} waiting ({in_time(advice.gain_ns)})"]
    if share := advice.local_share:
        words.append(f"{share.before:.0%} → {share.after:.0%} local")
    found = ", ".join(words)
    if counted := advice.counted:
        found += f"; counted in the lab: {counted.before:.0%} → {counted.after:.0%} local"
    if advice.counted_gain is not None:
        found += f", {-advice.counted_gain:+.0%} cost"
    if advice.refuted:
        found += ", so not here"
    return found


def show_advice(console: "Console", advised: Advised) -> None:
    """Print it as a numbered list."""
    if not advised.advice and not advised.reason:
        return
    console.print("\nWhat to do first", style="bold")
    for number, one in enumerate(advised.advice[:MOST_SHOWN], 1):
        print_point(console, f"  {number}. ", f"{one.action}: {gain_words(one)}")
        print_point(console, "     ", one.evidence, style="dim")
        console.print(f"     {one.change}", style="cyan", soft_wrap=True)
    left = len(advised.advice) - MOST_SHOWN
    if left > 0:
        console.print(f"     … {left} more: see --json or nmap report", style="dim")
    if advised.reason:
        print_point(console, "  ", advised.reason)


def advice_section(advised: Advised) -> str:
    """The same as a part of the page; nothing where nothing is known."""
    if not advised.advice and not advised.reason:
        return ""
    items = "".join(
        f"<li><strong>{in_page(one.action)}</strong> <span>{in_page(gain_words(one))}</span>"
        f'<p class="about">{in_page(one.evidence)}</p><pre>{in_page(one.change)}</pre></li>'
        for one in advised.advice
    )
    listed = f"<ol>{items}</ol>" if items else ""
    reason = f'<p class="about">{in_page(advised.reason)}</p>' if advised.reason else ""
    return f'<section id="advice"><h2>What to do first</h2>{listed}{reason}</section>'
