"""How findings are shown: on a terminal, as JSON, as metrics."""

import re
from io import StringIO
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from numaplan.common import make_console
from numaplan.launcher.look.find.findings import find
from numaplan.launcher.look.find.view import View
from numaplan.launcher.look.show.document import document
from numaplan.launcher.look.show.metrics import NAMES, metrics
from numaplan.launcher.look.show.terminal import renderables
from tests.support.look_views import process, thread, view

SCREEN = 40
SAMPLE = re.compile(r'numaplan_look_\w+\{(?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+\} [-+.e\d]+')


def shown(seen: View, width: int | None = None, height: int | None = None) -> list[str]:
    output = StringIO()
    console = make_console(file=output, width=width or 120)
    for one in renderables(seen, find(seen), width=width, height=height):
        console.print(one, soft_wrap=isinstance(one, str))
    return output.getvalue().splitlines()


def test_five_hundred_threads_fit_on_a_screen() -> None:
    threads = [thread(100 + k, k % 64, name=f"{'io' if k % 9 else 'pool'}-{k}") for k in range(500)]
    lines = shown(view("8x8", process(10, threads, {0: 4096})))
    assert len(lines) <= SCREEN and max(map(len, lines)) <= 300
    assert any("[memory-on-one-node]" in line for line in lines)
    assert any(line.startswith("10 io-*") for line in lines)


def spread(name: str, **more: Any) -> View:
    """Five hundred threads of one process on eight nodes, which hold its memory."""
    threads = [thread(100 + k, k, name=name.format(k, f"{k * 7919:05x}"), **more) for k in range(500)]
    return view("8x64", process(10, threads, dict.fromkeys(range(8), 200)))


@pytest.mark.parametrize("name", ["worker-{0}", "{0}-io", "io-{0}/3", "pool-{1}", "w{0}.{0}"])
def test_threads_whose_names_differ_in_numbers_are_one_row(name: str) -> None:
    found = [line for line in shown(spread(name)) if line.startswith("10 ")]
    assert len(found) <= 3 and re.search(r"\b6\d thr .* 5\d thr", found[0]), found


def test_threads_of_many_names_are_few_rows() -> None:
    words = ("alpha", "beta", "gamma", "delta", "eta", "theta", "iota", "kappa", "mu", "nu")
    threads = [thread(100 + k, k, name=words[k % 10] * (1 + k // 250)) for k in range(500)]
    lines = shown(view("4x128", process(10, threads, {0: 64})))
    found = [line.split() for line in lines if line.startswith("10 ")]
    assert len(found) == 6 and found[4][1:4] == ["16", "more", "names"]
    rows = [int(word) for row in found for word, unit in pairwise(row) if unit == "thr"]
    assert sum(rows) == 500


@pytest.mark.parametrize(("count", "said"), [(1, "1 thread, 1 busy"), (1200, "1,200 threads, 1,200 busy")])
def test_threads_are_counted_in_words(count: int, said: str) -> None:
    threads = [thread(100 + k, k % 8) for k in range(count)]
    assert shown(view("2x4", process(10, threads, {0: 4096})))[0].startswith(f"process 10: {said}, ")


@pytest.mark.parametrize("width", [80, 100, 200])
def test_nothing_is_cut_off_in_a_narrow_terminal(width: int) -> None:
    """Where eight nodes do not fit beside each other they are below each other."""
    lines = shown(spread("worker-{0}"), width)
    assert all(len(line) <= width and "…" not in line for line in lines)
    assert any(re.search(r"64\b.*200 MiB", line) for line in lines) == (width < 100)
    assert any(re.search(r"worker-\*( +6[34] thr){7}", line) for line in lines) == (width >= 100)


def test_lines_of_a_terminal_end_with_a_word_and_commands_stay_whole() -> None:
    argv = ("./app", *(f"--option-{k}=value" for k in range(20)))
    seen = view("4x2", process(10, [thread(100 + k, k) for k in range(8)], {0: 4096}, argv=argv))
    lines = shown(seen, 60)
    assert any(line.endswith(" ".join(argv)) for line in lines)
    told = [line for line in lines if "--option" not in line]
    assert all(len(line) <= 60 for line in told)
    assert " ".join(line.strip() for line in told[1:]).startswith(
        find(seen).findings[0].what.join(("1. ", ""))
    )


@pytest.mark.parametrize("height", [23, 49])
def test_what_is_looked_at_again_and_again_fits_the_terminal(height: int) -> None:
    """And begins with the finding that matters most."""
    bad = [process(1000 + k, [thread(1000 + k, 2, cpus=[2, 3], ran=0.9)], {0: 8}) for k in range(300)]
    pinned = [thread(100 + k, k % 4, cpus=(k % 4,), ran=0.01, waited=0.9) for k in range(500)]
    for seen in (view("4x2", *bad), view("4x128", process(10, pinned, {0: 64})), spread("w{0}")):
        lines = shown(seen, 80, height)
        assert len(lines) <= height
        assert not find(seen).findings or lines[1].startswith("1. ")


def test_threads_on_few_cpus_are_each_sent_to_another() -> None:
    pinned = [thread(100 + k, k % 4, cpus=(k % 4,), ran=0.01, waited=0.9) for k in range(500)]
    seen = view("4x128", process(10, pinned, {0: 64}))
    cures = [command for finding in find(seen).findings for command in finding.cure]
    assert len(cures) == 496 and len({command.split()[2] for command in cures}) == 496
    lines = shown(seen)
    assert len(lines) <= 2 * SCREEN and sum("and 120 more commands" in line for line in lines) == 4


def test_hundreds_of_processes_fit_on_a_screen() -> None:
    many = [process(1000 + k, [thread(1000 + k, k % 8)], {k % 8 // 2: 8}) for k in range(300)]
    lines = shown(view("4x2", *many))
    assert len(lines) <= SCREEN
    bad = [process(1000 + k, [thread(1000 + k, 2, cpus=[2, 3], ran=0.9)], {0: 8}) for k in range(300)]
    lines = shown(view("4x2", *bad))
    assert len(lines) <= 2 * SCREEN and any("more findings" in line for line in lines)


def test_the_document_says_it_all() -> None:
    seen = view("2x2", process(10, [thread(11, 2, cpus=[2, 3])], {0: 64}))
    content = msgspec.json.decode(document(seen, find(seen)))
    assert content["schema"] == "numaplan/look/1" and content["matters"] is True
    (finding,) = content["findings"]
    assert finding["name"] == "memory-away" and finding["cure"] == ["migratepages 10 0 1"]
    assert {"what", "evidence", "cost", "measured", "pids"} <= finding.keys()
    (found,) = content["processes"]
    assert found["memory_bytes"] == {"0": 64 << 20} and found["expected_local_share"] == 0
    assert found["busy"][0]["cpus"] == [2, 3]


def test_metrics_are_openmetrics_text() -> None:
    named = process(10, [thread(11, 2, cpus=[2, 3])], {0: 64}, name='a"b\\c\nd')
    seen = view("2x2", named)
    lines = metrics(seen, find(seen)).decode().splitlines()
    assert lines[-1] == "# EOF"
    samples = [line for line in lines if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in samples), samples
    assert 'numaplan_look_findings{finding="memory-away"} 1' in samples
    assert 'numaplan_look_findings{finding="node-full"} 0' in samples
    assert r'numaplan_look_memory_bytes{pid="10",name="a\"b\\c\nd",node="0"} 67108864' in samples
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(families)) == len(families) == 5
    assert len(NAMES) == len(set(NAMES))
