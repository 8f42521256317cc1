"""Messages between ranks for people and tools: sentences, a document's key, a table's columns, a figure."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...messages import COLLECTIVE_KINDS, RankMessages
from ..units import in_bytes, in_count
from .square_map import NOTHING, Figure, square_map

_TOP = 5  # pairs that are named
_TELLING = 0.01  # of all bytes that a pair has, to be named
_MOST_CELLS = 200  # ranks shown one by one; beyond, neighbours are merged
_NOTHING = {**NOTHING, "text": "none was sent"}


def message_sentences(messages: RankMessages | None) -> list[str]:
    """How much is sent, between whom most, and how much by collective operations; none if it is not known."""
    if messages is None:
        return []
    total, count = float(messages.bytes.sum()), float(messages.count.sum())
    if not count:
        return [f"the {messages.ranks:,} ranks send each other no messages"]
    sentences = [
        f"the {messages.ranks:,} ranks send each other {in_bytes(total)} in {in_count(count)} messages, "
        f"{len(messages.rank):,} of {messages.ranks * (messages.ranks - 1):,} pairs" + _left_out(messages)
    ]
    if total:
        sentences.append(_strongest(messages, total))
        collective, modelled = messages.share(*COLLECTIVE_KINDS), messages.share("modelled")
        if collective:
            how = ", as a model divides them into messages" if modelled else ""
            sentences.append(f"{collective:.1%} of the bytes between ranks are collective operations{how}")
    return sentences


def _strongest(messages: RankMessages, total: float) -> str:
    order = np.argsort(-messages.bytes, kind="stable")[:_TOP].tolist()
    most = float(messages.bytes[order[0]])
    if most < _TELLING * total:
        return f"no rank sends another more than {in_bytes(most)}"
    named = (f"{messages.rank[at]}→{messages.peer[at]} {messages.bytes[at] / total:.0%}" for at in order)
    return f"most bytes between ranks: {', '.join(named)}"


def _left_out(messages: RankMessages) -> str:
    left = messages.ranks - len(messages.recorded)
    return f" (of {left:,} rank{'s' * (left > 1)} it is not known)" if left > 0 else ""


def message_document(messages: RankMessages | None) -> dict[str, Any]:
    """Key `messages` of an analysis: from each rank to each other, in order; none where it is not known."""
    if messages is None:
        return {}
    return {
        "messages": {
            "ranks": messages.ranks,
            "recorded": messages.recorded.tolist(),
            "rank": messages.rank.tolist(),
            "peer": messages.peer.tolist(),
            "bytes": messages.bytes.tolist(),
            "messages": messages.count.tolist(),
            "kinds": {
                kind: {"bytes": size, "messages": count} for kind, (size, count) in messages.kinds.items()
            },
        }
    }


def message_figures(messages: RankMessages | None) -> list[Figure]:
    """A heat map of bytes from each rank to each other; of many ranks, neighbours share a cell."""
    if messages is None or messages.ranks < 2:
        return []
    each = -(-messages.ranks // _MOST_CELLS)
    cells = _cells(messages, each)
    shown = [
        str(start) if each == 1 else _span(start, each, messages.ranks)
        for start in range(0, messages.ranks, each)
    ]
    about = "Bytes that the row's rank sends to the column's. Colour grows with the square root."
    if each > 1:
        about += f" One cell is {each} by {each} ranks."
    if share := messages.share("modelled"):
        about += f" {share:.0%} are collective operations as a model divides them into messages."
    names, starts = [f"rank {name}" for name in shown], [str(at * each) for at in range(len(shown))]
    axes = "to rank", "from rank"
    title = "Messages between ranks"
    return [square_map("messages", title, about, cells, names, "bytes", starts, axes, _NOTHING)]


def _span(start: int, each: int, ranks: int) -> str:
    last = min(start + each, ranks) - 1
    return f"{start}–{last}" if last > start else str(start)


def _cells(messages: RankMessages, each: int) -> NDArray[np.float64]:
    """Bytes between groups of so many ranks."""
    size = -(-messages.ranks // each)
    place = messages.rank // each * size + messages.peer // each
    found = np.bincount(place, messages.bytes, minlength=size * size)
    return found.reshape(size, size).astype(np.float64)
