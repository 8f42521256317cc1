"""The table of messages between ranks: what is written is read, and what cannot be is refused."""

from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.profiler import Trace
from tests.support.traces import write_trace

THREAD = (0, "r0", "0", 7, 7, "app", 0, -1)
SAMPLE = {"time_ns": [1]}
MESSAGE = (0, 1, "sent", 8, 1, -1)


def test_messages_are_kept(tmp_path: Path) -> None:
    rows = [MESSAGE, (1, 0, "modelled", 1 << 40, 3, 2)]
    write_trace(tmp_path / "t.db", SAMPLE, [THREAD], messages=rows)
    with Trace.open(tmp_path / "t.db") as trace, trace.between(0, 5) as part:
        asked = "SELECT rank, peer, kind, bytes, count, thread FROM messages ORDER BY rank"
        assert trace.rows(asked) == rows
        assert part.rows(asked) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE messages SET rank = -1",
        "UPDATE messages SET peer = 2147483647",
        "UPDATE messages SET bytes = -1",
        "UPDATE messages SET count = -9223372036854775808",
        "UPDATE messages SET thread = -2",
        "UPDATE messages SET kind = NULL",
        "ALTER TABLE messages ALTER kind TYPE VARCHAR",
        "ALTER TABLE messages DROP count",
    ],
)
def test_impossible_messages_are_refused(tmp_path: Path, statement: str) -> None:
    write_trace(tmp_path / "t.db", SAMPLE, [THREAD], messages=[MESSAGE])
    import duckdb

    with duckdb.connect(str(tmp_path / "t.db")) as database:
        database.execute(statement)
    with pytest.raises(UsageError, match="not a trace of numaplan"):
        Trace.open(tmp_path / "t.db")
