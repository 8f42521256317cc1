"""Options with several values: each name and each process once."""

import pytest

from numaplan.common import UsageError, read_assignments


def test_names_are_read_in_lower_case() -> None:
    assert read_assignments("--set", ["T=2", " l1 = 32K:8 ", "a=b=c"], "T=2") == {
        "t": "2", "l1": "32K:8", "a": "b=c",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["T"], "'T' is not NAME=VALUE"),
        (["=2"], "is not NAME=VALUE"),
        (["T="], "is not NAME=VALUE"),
        (["T=1", "T=2"], "--set T: given twice"),
        (["turn=1", "TURN=1"], "--set TURN: given twice"),
    ],
)
def test_what_is_wrong_is_told(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_assignments("--set", words, "T=2")
