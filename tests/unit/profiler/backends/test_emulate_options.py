"""The emulation's options: what is taken, what is refused."""

import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.profiler.backends.emulation.options import read_emulate_options


def test_defaults_are_valid() -> None:
    options = read_emulate_options({})
    assert options.cached and options.drop_runtime
    assert "l1=64:8" in options.plugin and "l2=1024:16" in options.plugin and "l3=32768:16" in options.plugin


def test_given_options_replace_defaults() -> None:
    options = read_emulate_options({"cache": "off", "drop_runtime": "no", "l1": "48k:12", "turn": "0500"})
    assert not options.cached and not options.drop_runtime
    assert {"cache=off", "l1=64:12", "turn=500"} <= set(options.plugin)
    assert not any(word.startswith("drop_runtime") for word in options.plugin)


def test_sizes_go_on_to_what_all_caches_of_the_machine_hold() -> None:
    known = read_emulate_options({"l3": "256K:8"}, machine=Machine.load("4x4"))
    assert known.sizes[-1] == 256 << 10 and known.larger == (512 << 10, 1 << 20)
    assert known.plugin[-1].endswith(":262144:524288:1048576")
    assert read_emulate_options({}, machine=Machine.load("1x4")).larger == ()


def test_sizes_are_halves_of_the_last_level_down_to_two_first_levels() -> None:
    assert read_emulate_options({}).sizes == tuple(32 << 20 >> half for half in reversed(range(10)))
    assert "llc_sizes=131072:262144" in read_emulate_options({"l3": "256K:8", "l1": "64K:8"}).plugin
    assert read_emulate_options({"l3": "32K:1"}).sizes == (32 << 10,)
    machine = Machine.load("2x4")
    assert read_emulate_options({"l3_inclusive": "no", "l3": "4M:16"}, machine=machine).sizes[-1] == 8 << 20
    for off in ({"cache": "off"}, {"reach": "off"}):
        options = read_emulate_options(off)
        assert options.sizes == () and not any("llc_sizes" in word for word in options.plugin)
        with pytest.raises(UsageError, match="without a model of caches"):
            read_emulate_options({**off, "for_footprint": "1G"})


def test_the_footprint_is_a_size() -> None:
    assert read_emulate_options({"for_footprint": "40G"}).footprint == 40 << 30
    assert read_emulate_options({"for_footprint": "1tb"}).footprint == 1 << 40
    assert not any("footprint" in word for word in read_emulate_options({"for_footprint": "40G"}).plugin)


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
        ("for_footprint", "0"),
        ("for_footprint", "-1G"),
        ("for_footprint", "9999999999999"),
        ("l3", "999999999G:16"),
        ("l3", "１M:16"),
    ],
)
def test_nonsense_is_refused_naming_the_option(name: str, value: str) -> None:
    with pytest.raises(UsageError) as error:
        read_emulate_options({name: value})
    assert name.replace("_", "-") in str(error.value)
    assert error.value.hint
