"""The emulation's options: what is taken, what is refused."""

import pytest

from numaplan.common import UsageError
from numaplan.profiler.backends.emulation.options import read_options


def test_defaults_are_valid() -> None:
    options = read_options({})
    assert options.cached and options.drop_runtime
    assert "l1=64:8" in options.plugin and "l2=1024:16" in options.plugin and "l3=32768:16" in options.plugin


def test_given_options_replace_defaults() -> None:
    options = read_options({"cache": "off", "drop_runtime": "no", "l1": "48k:12", "turn": "0500"})
    assert not options.cached and not options.drop_runtime
    assert {"cache=off", "l1=64:12", "turn=500"} <= set(options.plugin)
    assert not any(word.startswith("drop_runtime") for word in options.plugin)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("colour", "red"),
        ("cache", "maybe"),
        ("schedule", ""),
        ("turn", "0"),
        ("turn", "-5"),
        ("turn", "1e3"),
        ("seed", "99999999999999999999"),
        ("l1", "32K"),
        ("l1", "32K:0"),
        ("l1", "32K:64"),
        ("l1", "33K:8"),
        ("l1", "0:8"),
        ("l2", "64K:16"),
        ("l2", "3M:16"),
        ("l3", "999999999G:16"),
        ("l3", "１M:16"),
    ],
)
def test_nonsense_is_refused_naming_the_option(name: str, value: str) -> None:
    with pytest.raises(UsageError) as error:
        read_options({name: value})
    assert name in str(error.value)
    assert error.value.hint
