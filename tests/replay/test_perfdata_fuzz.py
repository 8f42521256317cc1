"""A few hundred mutations a run; `python -m tests.replay.fuzz` tries more."""

from pathlib import Path

import pytest

from numaplan.profiler.perfdata import decode_perf
from tests.replay.fuzz import recordings, run


def test_the_originals_are_sound(tmp_path: Path) -> None:
    for index, content in enumerate(recordings()):
        path = tmp_path / f"{index}.data"
        path.write_bytes(content)
        decoded = decode_perf(path)
        assert (len(decoded.samples["time"]), decoded.warnings) == (12, ())
        assert decoded.lost == 3


@pytest.mark.parametrize("seed", range(4))
def test_mutations_never_crash_hang_or_fill_the_memory(seed: int) -> None:
    assert run(150, seed, list(recordings())) > 0
