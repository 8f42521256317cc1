"""Several traces beside each other: what the document and the terminal say about them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..analyzed import Analysis
from ..runs.merging import compare_traces
from ..runs.stability import RunAgreement


def runs_sentences(agreements: Sequence[RunAgreement | None], merged: bool) -> list[str]:
    """What each further trace is to the first one, and whether what follows is of all of them."""
    if not agreements:
        return []
    sentences = []
    for number, agreement in enumerate(agreements, start=2):
        text = agreement.sentence() if agreement else "other threads (another rank): shown beside the first"
        sentences.append(f"trace {number}: {text}")
    if not merged:
        sentences.append("what follows is for trace 1 only")
    elif any(agreements):
        sentences.append("communication and loads are means per run; regions are those of trace 1")
    return sentences


def runs_document(
    paths: Sequence[str | os.PathLike[str]],
    analyses: Sequence[Analysis],
    agreements: Sequence[RunAgreement | None],
    merged: bool,
) -> dict[str, Any]:
    """Keys `runs`, `merged` and, for two runs with the same threads, `difference`; empty for one trace."""
    if not agreements:
        return {}
    runs = [
        {
            "trace": str(Path(path)),
            "samples": analysis.samples,
            "confidence": analysis.confidence,
            "against_first": _agreement(agreement),
        }
        for path, analysis, agreement in zip(paths, analyses, [None, *agreements], strict=True)
    ]
    document: dict[str, Any] = {"runs": runs, "merged": merged}
    if len(agreements) == 1 and agreements[0] is not None:
        difference = compare_traces(*analyses)
        document["difference"] = {
            "threads": [{"process": process, "path": path} for process, path in difference.threads],
            "comm": difference.comm.tolist(),
            "sure": difference.sure.tolist(),
            "loads": difference.loads.tolist(),
        }
    return document


def _agreement(agreement: RunAgreement | None) -> dict[str, Any] | None:
    if agreement is None:
        return None
    return {
        "verdict": agreement.verdict,
        "correlation": agreement.correlation,
        "matched": agreement.matched,
        "loads": agreement.loads,
        "threads": [path for _, path in agreement.threads],
        "roles": [agreement.threads[role][1] for role in agreement.roles],
        "swapped": agreement.swapped,
        "only_in_one": agreement.others,
    }
