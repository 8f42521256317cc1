"""Values of options: each name and each process once, sizes in bytes."""

import pytest

from numaplan.common import UsageError, read_assignments, read_size


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


def test_sizes_are_told_with_their_bounds() -> None:
    for text, said in (
        ("10K", "at least 1M"),
        ("2T", "at most 1T"),
        ("few", "at least 1M"),
        ("9" * 16, "not a"),
    ):
        with pytest.raises(UsageError, match=f"--memory {text}: not a size.*{said.removeprefix('not a')}"):
            read_size("--memory", text, least=1 << 20, most=1 << 40)
    assert read_size("--memory", "1.5M", least=1 << 20) == 3 << 19
