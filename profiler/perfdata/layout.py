"""Where the fields of a sample stand, by sample_type.

A sample is a header, then the fields of `_ORDER` that its sample_type names, in that order. Those of varying
length cut it into sections; inside a section every field has a fixed place. Other records have a tail if
`sample_id_all` says so.
"""

from dataclasses import dataclass

from . import attrs as a

HEADER = 8
VARIABLE = frozenset((a.READ, a.CALLCHAIN, a.RAW, a.BRANCH_STACK, a.REGS_USER, a.STACK_USER, a.REGS_INTR))
# (bits, any of which brings 8 bytes or a field of varying length; columns in it: (name, position, width))
_ORDER: tuple[tuple[int, tuple[tuple[str, int, int], ...]], ...] = (
    (a.IDENTIFIER, (("id", 0, 8),)),
    (a.IP, (("ip", 0, 8),)),
    (a.TID, (("pid", 0, -4), ("tid", 4, -4))),
    (a.TIME, (("time", 0, 8),)),
    (a.ADDR, (("addr", 0, 8),)),
    (a.ID, (("id", 0, 8),)),
    (a.STREAM_ID, (("stream_id", 0, 8),)),
    (a.CPU, (("cpu", 0, 4),)),
    (a.PERIOD, (("period", 0, 8),)),
    (a.READ, ()),
    (a.CALLCHAIN, ()),
    (a.RAW, ()),
    (a.BRANCH_STACK, ()),
    (a.REGS_USER, ()),
    (a.STACK_USER, ()),
    (a.WEIGHT | a.WEIGHT_STRUCT, (("weight", 0, 8),)),
    (a.DATA_SRC, (("data_src", 0, 8),)),
    (a.TRANSACTION, ()),
    (a.REGS_INTR, ()),
    (a.PHYS_ADDR, (("phys_addr", 0, 8),)),
)
_TAIL = (a.TID, a.TIME, a.ID, a.STREAM_ID, a.CPU, a.IDENTIFIER)


@dataclass(frozen=True)
class Section:
    """Fields at fixed places behind one of varying length (`after`, 0 for the first section).

    columns: (name, offset from the start of the section, width); size: bytes of the section.
    """

    after: int
    columns: tuple[tuple[str, int, int], ...]
    size: int


@dataclass(frozen=True)
class Layout:
    """One way samples are laid out; events of equal layout are decoded together."""

    sections: tuple[Section, ...]
    read_format: int
    branch_sample_type: int
    user_registers: int
    interrupt_registers: int


def layout_of(attr: a.Attr, order: str) -> Layout:
    """The layout of an event's samples (order '<' or '>'). Fields unknown here come behind all others."""
    sections: list[Section] = []
    columns: list[tuple[str, int, int]] = []
    after, size = 0, HEADER
    for bits, inside in _ORDER:
        present = attr.sample_type & bits
        if present and present in VARIABLE:
            sections.append(Section(after, tuple(columns), size))
            after, columns, size = present, [], 0
        elif present:
            columns += [(name, size + at, width) for name, at, width in inside]
            if present & a.WEIGHT_STRUCT:  # the latency is the low half of the word
                columns[-1] = ("weight", size if order == "<" else size + 4, 4)
            size += 8
    sections.append(Section(after, tuple(columns), size))
    return Layout(
        sections=tuple(sections),
        read_format=attr.read_format if attr.sample_type & a.READ else 0,
        branch_sample_type=attr.branch_sample_type if attr.sample_type & a.BRANCH_STACK else 0,
        user_registers=attr.sample_regs_user.bit_count() if attr.sample_type & a.REGS_USER else 0,
        interrupt_registers=attr.sample_regs_intr.bit_count() if attr.sample_type & a.REGS_INTR else 0,
    )


def tail_of(attr: a.Attr) -> dict[int, int]:
    """Distance of each field of the tail from the end of a record that is no sample; empty without a tail."""
    if "sample_id_all" not in attr.flags:
        return {}
    present = [bit for bit in _TAIL if attr.sample_type & bit]
    return {bit: 8 * (len(present) - index) for index, bit in enumerate(present)}


def id_offset(attr: a.Attr) -> int | None:
    """Where a sample of the event carries its id, from the start of the record; the stream's id will do."""
    offsets = {name: offset for name, offset, _width in reversed(layout_of(attr, "<").sections[0].columns)}
    return offsets.get("id", offsets.get("stream_id"))
