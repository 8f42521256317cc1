"""How findings are shown: on a terminal, as JSON, as metrics."""

import re
from io import StringIO

import msgspec

from numaplan.common import make_console
from numaplan.launcher.look.find.findings import find
from numaplan.launcher.look.show.document import document
from numaplan.launcher.look.show.metrics import NAMES, metrics
from numaplan.launcher.look.show.terminal import renderables
from tests.support.look_views import process, thread, view

SCREEN = 40
SAMPLE = re.compile(r'numaplan_look_\w+\{(?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+\} [-+.e\d]+')


def shown(seen: object) -> list[str]:
    output = StringIO()
    console = make_console(file=output, width=120)
    for one in renderables(seen, find(seen)):  # type: ignore[arg-type]
        console.print(one, soft_wrap=isinstance(one, str))
    return output.getvalue().splitlines()


def test_five_hundred_threads_fit_on_a_screen() -> None:
    threads = [thread(100 + k, k % 64, name=f"{'io' if k % 9 else 'pool'}-{k}") for k in range(500)]
    lines = shown(view("8x8", process(10, threads, {0: 4096})))
    assert len(lines) <= SCREEN and max(map(len, lines)) <= 300
    assert any("[memory-on-one-node]" in line for line in lines)
    assert any(line.startswith("10 io-*") for line in lines)


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
