"""Messages between ranks as sentences, files and a figure, up to a thousand ranks."""

import numpy as np
import pytest

from numaplan.analyzer import RankMessages, message_document, message_sentences
from numaplan.analyzer.report.figures.messages import message_figures


def halo(side: int, size: float = 1 << 20) -> RankMessages:
    """Each rank of a cube to its six neighbours, the last of a row to the first as well."""
    at = np.arange(side**3).reshape(side, side, side)
    pairs = {
        (int(rank), int(peer))
        for axis in range(3)
        for step in (1, -1)
        for rank, peer in zip(at.ravel(), np.roll(at, step, axis).ravel(), strict=True)
    }
    rank, peer = np.array(sorted(pairs), np.int64).T
    sizes = np.full(len(rank), size)
    counts = np.full(len(rank), 10.0)
    kinds = {"sent": (float(sizes.sum()) * 0.75, 1.0), "modelled": (float(sizes.sum()) * 0.25, 1.0)}
    return RankMessages(side**3, np.arange(side**3), rank, peer, sizes, counts, kinds)


def pair(ranks: int, rank: int, peer: int, size: float) -> RankMessages:
    """One rank that sends to one other, and is all that is known."""
    amounts = np.array([size]), np.array([3.0])
    return RankMessages(
        ranks, np.array([rank]), np.array([rank]), np.array([peer]), *amounts, {"sent": (size, 3.0)}
    )


def test_a_thousand_ranks_share_cells() -> None:
    messages = halo(10)
    (figure,) = message_figures(messages)
    cells = np.array(figure["data"][0]["z"])
    assert cells.shape == (200, 200)
    assert cells.sum() == pytest.approx(messages.bytes.sum(), rel=1e-3)
    assert figure["data"][0]["_names"][-1] == "rank 995–999"
    assert "One cell is 5 by 5 ranks" in figure["about"] and "25% are collective" in figure["about"]


def test_few_ranks_have_a_cell_each() -> None:
    (figure,) = message_figures(halo(3, 8))
    cells = np.array(figure["data"][0]["z"])
    assert cells.shape == (27, 27) and cells[0, 1] == 8 and cells[0, 14] == 0
    assert message_figures(None) == []


def test_ranks_that_do_not_fill_their_last_cell() -> None:
    messages = RankMessages(
        401,
        np.arange(401),
        np.array([400]),
        np.array([0]),
        np.array([7.0]),
        np.array([1.0]),
        {"sent": (7.0, 1.0)},
    )
    (figure,) = message_figures(messages)
    assert np.array(figure["data"][0]["z"])[133, 0] == 7
    assert figure["data"][0]["_names"][-1] == "rank 399–400"


def test_sentences() -> None:
    assert message_sentences(None) == []
    many, strongest, kinds = message_sentences(halo(10))
    assert many.startswith(
        "the 1,000 ranks send each other 5.859 GiB in 60 k messages, 6,000 of 999,000 pairs"
    )
    assert strongest == "no rank sends another more than 1 MiB"
    assert kinds.startswith("25.0% of the bytes between ranks are collective operations, as a model")
    sentence, strongest = message_sentences(pair(2, 0, 1, 9))
    assert (
        sentence == "the 2 ranks send each other 9 B in 3 messages, 1 of 2 pairs (of 1 rank it is not known)"
    )
    assert strongest == "most bytes between ranks: 0→1 100%"
    empty = RankMessages(2, np.arange(2), *(np.zeros(0) for _ in range(4)), {})  # type: ignore[arg-type]
    assert message_sentences(empty) == ["the 2 ranks send each other no messages"]


def test_the_document_has_each_pair() -> None:
    assert message_document(None) == {}
    document = message_document(halo(2, 5))["messages"]
    assert document["ranks"] == 8 and len(document["rank"]) == len(document["bytes"]) == 24
    assert document["kinds"]["sent"] == {"bytes": 90.0, "messages": 1.0}
