"""How `nprof` draws its answers on a terminal."""

from collections.abc import Sequence
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from numaplan.common import counted, make_console, tell

if TYPE_CHECKING:
    from ..doctor import Check
    from ..recording.importing import ImportSummary
    from ..recording.record import RecordSummary

MOST_THREADS = 40
LONGEST = 2000  # characters of a command line
MOST_REGIONS = 4


def show_info(facts: dict[str, Any]) -> None:
    """Print what `describe` found."""
    from rich.table import Table

    console = make_console()
    total = sum(facts["samples"].values())
    command = join(facts["app"]["argv"]) or "(no command line)"
    console.print(command if len(command) <= LONGEST else f"{command[:LONGEST]} …", style="bold")
    machine = facts["machine"]
    grid = Table.grid(padding=(0, 2))
    nodes = f"{machine['nodes']} node{'s' * (machine['nodes'] != 1)}"
    grid.add_row("machine", f"{machine['name']}: {nodes}, {machine['cpus']} cpus")
    period = f", period {facts['period']}" if facts["period"] else ""
    grid.add_row("backend", f"{facts['backend']}{period} ({facts['backend_why']})")
    # A recording from elsewhere, or of what ran already, does not tell how the program ended.
    ended = "" if facts["exit_code"] is None else f", exit code {facts['exit_code']}"
    grid.add_row("duration", f"{_duration(facts)}{ended}")
    if facts["footprint"]:
        grid.add_row("memory", _footprint(facts))
    if facts["part"]:
        grid.add_row("part", _part(facts["part"]))
    if facts["job"]:
        grid.add_row("job", _job(facts["job"]))
    if facts["messages"]:
        grid.add_row("messages", _messages(facts["messages"]))
    grid.add_row("samples", f"{total:,} of {counted(facts['threads'], 'thread')}, {facts['losses']:,} lost")
    grid.add_row("events", _counts(facts["samples"], total))
    grid.add_row("levels", _counts(facts["levels"], total))
    grid.add_row("regions", _counts(facts["region_kinds"], total))
    for number, row in enumerate(facts["regions"][:MOST_REGIONS]):
        share = f"{row['samples'] / total:.1%}" if total else "–"
        grid.add_row("" if number else "most in", f"{row['title']} ({share})")
    console.print(grid)
    threads = Table("thread", "process", "path", "name", "samples", "share", box=None, padding=(0, 2))
    for row in facts["per_thread"][:MOST_THREADS]:
        share = f"{row['samples'] / total:.1%}" if total else "–"
        threads.add_row(
            str(row["thread"]), row["process"], row["path"], row["name"], f"{row['samples']:,}", share
        )
    console.print(threads)
    if len(facts["per_thread"]) > MOST_THREADS:
        console.print(f"… and {len(facts['per_thread']) - MOST_THREADS} more threads (--json lists all)")


def _job(job: dict[str, str]) -> str:
    words = {"rank": "rank {}", "ranks": " of {}", "job": " of job {}", "host": " on {}"}
    return "".join(text.format(job[name]) for name, text in words.items() if name in job)


def _messages(messages: dict[str, Any]) -> str:
    kinds = (
        f"{name} {found['bytes']:,} bytes in {found['count']:,}" for name, found in messages["kinds"].items()
    )
    return f"{', '.join(kinds) or 'none'} (by {messages['by']})"


def _part(part: dict[str, str]) -> str:
    words = {
        "skipped": "{} skipped at the start",
        "taken": "{} taken",
        "on_signal": "between signals",
        "marked": "between numaplan_begin() and numaplan_end()",
    }
    return ", ".join(text.format(part[name]) for name, text in words.items() if name in part)


def _duration(facts: dict[str, Any]) -> str:
    """Emulation counts accesses for nanoseconds: what it took is another thing."""
    if facts["clock"] == "accesses":
        return f"{facts['duration_ns']:,} accesses (emulated in {facts['host_seconds']:.1f} s)"
    return f"{facts['duration_ns'] / 1e9:.3f} s"


def _footprint(facts: dict[str, Any]) -> str:
    """The memory that the program touched, and the input it stands for."""
    from numaplan.machine import size_word

    touched = f"{facts['footprint'] / (1 << 20):,.1f}M touched"
    if not facts["for_footprint"]:
        return touched
    stated, llc = size_word(facts["for_footprint"]), size_word(facts["for_llc"])
    if facts["for_footprint"] < facts["footprint"]:
        return f"{touched}, more than the {stated} of --for-footprint: it stands for its own input"
    return f"{touched}, for an input of {stated}: levels are those with a last-level cache of {llc}"


def _counts(counts: dict[str, int], total: int) -> str:
    parts = [f"{name} {count:,} ({count / total:.1%})" for name, count in counts.items() if total]
    return ", ".join(parts) or "none"


def show_checks(checks: Sequence["Check"]) -> None:
    """Print the doctor's findings: a mark, name and finding, and below them the command that fixes it."""
    from rich.text import Text

    console = make_console()
    for check in checks:
        mark = ("ok  ", "green") if check.ok else ("lack", "red")
        console.print(Text.assemble(mark, "  ", (check.name, "bold"), f"  {check.finding}"), soft_wrap=True)
        if check.hint and not check.ok:
            console.print(Text.assemble("      fix: ", (check.hint, "cyan")), soft_wrap=True)


def say(*texts: str) -> None:
    """Lines for people, on stderr."""
    tell(*(f"nprof: {text}" for text in texts))


def say_summary(summary: "RecordSummary | ImportSummary", trace: Path) -> None:
    """Say what a trace came to hold."""
    from ..recording.outcome import summarise

    lost = f", {summary.losses:,} lost" if summary.losses else ""
    held = f"{counted(summary.samples, 'sample')} of {counted(summary.threads, 'thread')}{lost} in {trace}"
    say(held, *summarise(trace))
