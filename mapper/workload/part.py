"""The part of a recording that a command looks at: between two times, or one phase."""

import re
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec

from numaplan.common import UsageError
from numaplan.profiler import Trace

_MOMENT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(%|[a-zA-Z]{0,2})")
_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_ACCESSES = {"K": 1e3, "M": 1e6, "G": 1e9}
_END = 1 << 62


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """start, end: times as the command line has them, empty: the recording's; phase: its number, 0: all."""

    start: str = msgspec.field(default="", name="from")
    end: str = msgspec.field(default="", name="to")
    phase: int = 0

    def recorded(self) -> dict[str, Any]:
        """What the provenance of a plan says of it."""
        return {"part": msgspec.to_builtins(self)} if self != WHOLE else {}

    def notes(self) -> list[str]:
        """What to say of it where it is taken of several runs."""
        words = (f"--{name} {value}" for name, value in msgspec.to_builtins(self).items())
        return [f"of each run only {' '.join(words)}"] if self != WHOLE else []

    def of(self, trace: Trace) -> AbstractContextManager[Trace]:
        """The part of an open trace; raises UsageError for a time that cannot be and for an empty part."""
        if self == WHOLE:
            return nullcontext(trace)
        if self.phase and (self.start or self.end):
            raise UsageError("--phase with --from or --to", "give one of them")
        start, end = _phase(trace, self.phase) if self.phase else self._span(trace)
        part = trace.between(start, end)
        if part.sample_count:
            return part
        part.close()
        raise UsageError(
            f"{trace.path}: no sample from {_shown(trace, start)} to {_shown(trace, end)}",
            f"the recording has {trace.sample_count:,} samples in {_shown(trace, trace.duration_ns)}",
        )

    def _span(self, trace: Trace) -> tuple[int, int]:
        start = _moment(trace, "--from", self.start) if self.start else 0
        end = _moment(trace, "--to", self.end) if self.end else _END
        whole = f"the recording has {_shown(trace, trace.duration_ns)}"
        if start >= trace.duration_ns:
            raise UsageError(f"--from {self.start}: {trace.path} ends before", whole)
        if start >= end:
            raise UsageError(f"--from {self.start or '0s'} --to {self.end}: nothing lies between", whole)
        return start, end


WHOLE = Part()


def recorded_part(provenance: dict[str, Any], name: str) -> Part:
    """The part that a plan was made from, by its provenance; raises UsageError if it cannot be."""
    try:
        return msgspec.convert(provenance.get("part", {}), Part)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: provenance: part: {error}", "make the plan again") from error


def part_note(whole: Trace, part: Trace) -> list[str]:
    """What to say of a part that is taken; nothing for the whole recording."""
    if part.part is None:
        return []
    start, end = part.part
    of_time = f"from {_shown(whole, start)} to {_shown(whole, min(end, whole.duration_ns))}"
    return [f"only {of_time}: {part.sample_count:,} of {whole.sample_count:,} samples"]


def _phase(trace: Trace, number: int) -> tuple[int, int]:
    """[start, end) of a phase by Algorithm 1, as 'nmap analyze' counts them."""
    from numaplan.analyzer import analyze_trace

    analysis = analyze_trace(trace)
    if number > len(analysis.phases):
        there = "one phase" if len(analysis.phases) == 1 else f"{len(analysis.phases)} phases"
        raise UsageError(f"--phase {number}: {trace.path} has {there}", "see 'nmap analyze'")
    phase, line = analysis.phases[number - 1], analysis.timeline
    last = number == len(analysis.phases)
    start, end = (line.start_ns + place * line.slice_ns for place in (phase.start, phase.end))
    return start, _END if last else end


def _moment(trace: Trace, option: str, word: str) -> int:
    """ns from the start of the recording; where its clock counts accesses, how many of them."""
    found = _MOMENT.fullmatch(word)
    number, unit = (float(found[1]), found[2]) if found else (0.0, "?")
    in_accesses = trace.meta.get("clock") == "accesses"
    if unit == "%" and number <= 100:
        return round(trace.duration_ns * number / 100)
    scale = _NS.get(unit) or (_ACCESSES.get(unit) if in_accesses else None) or (number == 0 and unit == "")
    if not scale:
        hint = (
            "give for example 20M (accesses), 2ms (as many) or 10%"
            if in_accesses
            else "give 2s, 500ms or 10%"
        )
        raise UsageError(f"{option} {word}: not a time", hint)
    return min(_END, round(number * scale))


def _shown(trace: Trace, ns: int) -> str:
    if ns >= _END:
        return "the end"
    return f"{ns:,} accesses" if trace.meta.get("clock") == "accesses" else f"{ns / 1e9:.6g} s"
