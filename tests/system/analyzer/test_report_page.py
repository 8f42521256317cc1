"""The report page, opened in a real browser without a network: every chart drawn, nothing complained of."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from numaplan.analyzer import FalseSharing, analyze_trace, page_accesses, rank_messages, region_uses
from numaplan.analyzer.report.page import write_report
from numaplan.analyzer.report.tables import lines_table
from numaplan.mapper import PlanOptions, make_plan
from numaplan.mapper.planning.judge.compare import method_costs
from numaplan.mapper.workload.from_trace import workload_of_trace
from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Machine, Trace, TraceWriter
from tests.support.traces import write_trace

pytestmark = pytest.mark.system

SAFE = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"),
    *("--virtual-time-budget=20000", "--timeout=60000"),
)
BASE = 1 << 40
SAYS_ROOM = """<script>
new MutationObserver(() => {
  if (document.body.dataset.state !== "drawn") return;
  for (const plot of document.querySelectorAll(".plot")) {
    const { margin, _size } = plot._fullLayout, card = plot.getBoundingClientRect();
    const cut = [...plot.querySelectorAll("text")].map((text) => text.getBoundingClientRect()).some((text) =>
      text.left < card.left - 1 || text.right > card.right + 1 || text.top < card.top - 1 ||
      text.bottom > card.bottom + 1);
    plot.dataset.room = cut ? "cut" : _size.l > margin.l || _size.b > margin.b ? "short" : "enough";
  }
}).observe(document.body, { attributes: true });
</script>"""
SAYS_ORDER = """<script>
const order = [];
new MutationObserver((_, observer) => {
  for (const section of document.querySelectorAll("section"))
    if (section.querySelector(".main-svg") && !order.includes(section.id)) order.push(section.id);
  if (document.body.dataset.state !== "drawn") return;
  observer.disconnect();
  document.body.dataset.order = order.join(" ");
}).observe(document.body, { attributes: true, childList: true, subtree: true });
</script>"""
EVIL = "</script><script>document.title='owned'</script>"


def ring_trace(path: Path, threads: int, count: int) -> Path:
    """Threads on a ring in a shuffled order: each writes its own 64 KiB and reads its neighbours' borders."""
    rng = np.random.default_rng(threads)
    thread = rng.integers(0, threads, count)
    place = rng.permutation(threads)[thread]
    own = rng.random(count) < 0.7
    where = np.where(own, place, (place + rng.choice([-1, 1], count)) % threads)
    is_write = own & (rng.random(count) < 0.5)
    offset = np.where(own, rng.integers(0, 65536, count), rng.integers(0, 8192, count))
    kinds = np.where(is_write, EVENT_CODE["store"], EVENT_CODE["load"])
    with TraceWriter(path) as writer:
        writer.add_rows("machine", [(Machine.load("4x2").to_json().decode(),)])
        names = ["0", *(f"0.{index}" for index in range(1, threads))]
        writer.add_rows("threads", [(i, "p0", name, i, 1, "ring", 0, -1) for i, name in enumerate(names)])
        writer.add_rows(
            "regions", [(0, "p0", "heap", f"ring+0x9 {EVIL}", "", BASE, threads << 16, 0, 1, 0, -1)]
        )
        writer.add_samples(
            {
                "time_ns": np.sort(rng.integers(0, 10**9, count)),
                "thread": thread.astype(np.int32),
                "cpu": np.full(count, -1, np.int32),
                "node": np.full(count, -1, np.int32),
                "addr": (BASE + where * 65536 + offset).astype(np.uint64),
                "phys_addr": np.zeros(count, np.uint64),
                "ip": np.zeros(count, np.uint64),
                "event": kinds.astype(np.uint8),
                "is_write": is_write,
                "level": np.full(count, LEVEL_CODE["l1"], np.uint8),
                "latency": np.full(count, -1, np.int32),
                "region": np.zeros(count, np.int32),
            }
        )
        writer.set_meta(
            {"backend": "emulate", "period": 1000, "argv": f'["ring","{EVIL}"]', "duration_ns": 10**9}
        )
    return path


def plan_for(threads: int) -> dict[str, Any]:
    """The content of a plan.json that deals threads out to four nodes in turn."""
    costs = {
        "remote_comm": 9.0,
        "remote_share": 0.5,
        "hop_cost": 99.0,
        "load_std": 1.0,
        "node_loads": [1, 2, 3, 4],
    }
    paths = ["0", *(f"0.{index}" for index in range(1, threads))]
    quarter = (threads << 16) // 4
    runs = [{"offset": quarter * node, "bytes": quarter, "node": node} for node in range(4)]
    key = {"kind": "heap", "name": f"ring+0x9 {EVIL}", "bytes": threads << 16, "process": "p0", "sequence": 1}
    return {
        "machine": Machine.load("4x2").to_dict(),
        "method": "best",
        "objective": "balanced",
        "threads": [{"path": path, "process": "p0", "node": i % 4} for i, path in enumerate(paths)],
        "memory": [{"region": key, "policy": "bind", "runs": runs}],
        "predicted": {**costs, "local_share": 0.9, "baselines": {"compact": costs, "scatter": costs}},
    }


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no chromium here to open the page in")
    return found


def opened(chromium: str, page: Path, profile: Path, *options: str, at: str = "") -> tuple[str, list[str]]:
    """(the document after its scripts ran, what the console said)."""
    command = [chromium, *SAFE, *options, f"--user-data-dir={profile}", "--dump-dom", page.as_uri() + at]
    result = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    return result.stdout, [line for line in result.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threads", "planned", "charts"), [(8, True, 7), (8, False, 3), (1, False, 3), (256, True, 7)]
)
def test_every_chart_is_drawn(
    chromium: str, tmp_path: Path, threads: int, planned: bool, charts: int
) -> None:
    page = tmp_path / "report.html"
    with Trace.open(ring_trace(tmp_path / "trace.db", threads, 40_000)) as trace:
        write_report(trace, page, plan=plan_for(threads) if planned else None)
    assert page.stat().st_size < 2_600_000
    document, console = opened(chromium, page, tmp_path / "profile")
    assert console == []
    assert 'data-state="drawn"' in document
    assert f'data-charts="{charts}"' in document
    sections = re.findall(r'<section id="([\w-]+)" class="(?:square|wide|tall)', document)
    assert len(sections) == charts
    assert document.count('class="main-svg"') >= charts
    assert "<title>owned" not in document


@pytest.mark.slow
@pytest.mark.parametrize("at", ["", "#loads"])
def test_what_the_window_shows_is_drawn_first(chromium: str, tmp_path: Path, at: str) -> None:
    page = tmp_path / "report.html"
    with Trace.open(ring_trace(tmp_path / "trace.db", 8, 5000)) as trace:
        write_report(trace, page, plan=plan_for(8))
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", SAYS_ORDER + "</body>"))
    document, console = opened(chromium, page, tmp_path / "profile", "--window-size=1280,600", at=at)
    found = re.search(r'data-order="([^"]*)"', document)
    assert console == [] and found
    first, *others = found[1].split()
    assert len(others) == 6
    assert first == (at.removeprefix("#") or "communication")


@pytest.mark.slow
@pytest.mark.parametrize("size", ["1280,900", "700,900"])
def test_labels_have_room_before_plotly_makes_some(chromium: str, tmp_path: Path, size: str) -> None:
    """It draws a chart once more for that, and the square ones several times."""
    page = tmp_path / "report.html"
    with Trace.open(ring_trace(tmp_path / "trace.db", 256, 40_000)) as trace:
        write_report(trace, page, plan=plan_for(256))
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", SAYS_ROOM + "</body>"))
    document, _ = opened(chromium, page, tmp_path / "profile", f"--window-size={size}")
    assert re.findall(r'data-room="(\w+)"', document) == ["enough"] * 7


@pytest.mark.slow
def test_a_thousand_ranks_are_drawn(chromium: str, tmp_path: Path) -> None:
    ranks, page = 1000, tmp_path / "report.html"
    trace = write_trace(
        tmp_path / "trace.db",
        {"time_ns": np.arange(ranks), "thread": np.arange(ranks)},
        [(rank, f"r{rank}", "0", 9 + rank, 9 + rank, "halo", 0, -1) for rank in range(ranks)],
        messages=[
            (rank, (rank + step) % ranks, "sent", 1 << 20, 9, -1) for rank in range(ranks) for step in (1, 30)
        ],
    )
    with Trace.open(trace) as job:
        write_report(job, page, messages=rank_messages([job]))
    assert page.stat().st_size < 6_000_000
    document, console = opened(chromium, page, tmp_path / "profile")
    assert console == [] and 'data-state="drawn"' in document and 'data-charts="4"' in document
    section = document[document.index('id="messages"') :]
    assert "One cell is 5 by 5 ranks" in section[: section.index("</section>")]


@pytest.mark.slow
def test_every_method_is_shown_beside_a_plan(chromium: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    with Trace.open(ring_trace(tmp_path / "trace.db", 8, 40_000)) as trace:
        workload = workload_of_trace(trace.path)
        plan = make_plan(workload, Machine.load("4x2"), PlanOptions()).plan
        found = method_costs(plan, "plan", workload)
        write_report(trace, page, plan=msgspec.to_builtins(plan), methods=found)
    assert {"best", "cmlb", "eagermap", "compact"} <= {cost.method for cost in found}
    best = next(cost for cost in found if cost.method == "best")
    assert best.even and best.value == min(cost.value for cost in found if cost.even)
    assert [cost.method for cost in found if cost.method == "scatter" and cost.value > best.value]
    document, console = opened(chromium, page, tmp_path / "profile")
    assert console == [] and 'data-state="drawn"' in document and 'data-charts="8"' in document
    section = document[document.index('id="methods-compared"') :]
    section = section[: section.index("</section>")]
    assert "eagermap" in section and "ms that threads wait" in section
    assert best.value == pytest.approx(plan.predicted.cost)


def test_the_page_asks_for_nothing_from_the_network(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    with Trace.open(ring_trace(tmp_path / "trace.db", 8, 5000)) as trace:
        write_report(trace, page, plan=plan_for(8))
    text = page.read_text()
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    assert "@import" not in text and "url(" not in text
    assert EVIL not in text
    assert "the plan is for" not in text
    assert "nodes 0, 1, 2, 3 in 4 pieces" in text


def test_falsely_shared_lines_are_listed(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    with Trace.open(ring_trace(tmp_path / "trace.db", 8, 5000)) as trace:
        write_report(trace, page)
        assert 'id="false-sharing"' not in page.read_text()
        analysis, pages = analyze_trace(trace), page_accesses(trace)
        found = [FalseSharing(0, 4096 * line, [0, 3], 90 - line, 40) for line in range(23)]
        text = lines_table(found, region_uses(trace, pages), analysis)
    assert text.count("<tr>") == 21 and "3 more entries are not shown" in text
    assert "4,096</td>" in text and ">0, 0.3</td>" in text and EVIL not in text


def test_a_plan_of_another_run_is_told(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    with Trace.open(ring_trace(tmp_path / "trace.db", 8, 5000)) as trace:
        write_report(trace, page, plan=plan_for(12))
    assert "the plan is for 12 threads, this trace has 8" in page.read_text()


def test_a_plan_of_another_program_is_told(tmp_path: Path) -> None:
    app = {"argv": ["/opt/bin/heat", "9"], "build_id": "aa11"}
    page = tmp_path / "report.html"
    with Trace.open(ring_trace(tmp_path / "trace.db", 8, 5000)) as trace:
        for build, argv, said in (
            ("bb22", '["./ring"]', "the plan is for another program (heat) than the trace (ring)"),
            ("bb22", '["./heat"]', "the plan is for another build of heat"),
            ("bb22", "no list", "the plan is for another program (heat) than the trace (bb22)"),
            ("aa11", '["./ring"]', ""),
            ("", '["./ring"]', ""),
        ):
            trace.meta.update(build_id=build, argv=argv)
            write_report(trace, page, plan={**plan_for(8), "app": app})
            text = page.read_text()
            assert said in text
            assert ("the plan is for another" in text) == bool(said)


@pytest.mark.slow
def test_everything_fits_a_narrow_screen(chromium: str, tmp_path: Path) -> None:
    """Nor is a column of a table out of sight. A window is never narrower than 500 pixels, a frame may be."""
    page, frame = tmp_path / "report.html", tmp_path / "frame.html"
    with Trace.open(ring_trace(tmp_path / "trace.db", 1024, 40_000)) as trace:
        write_report(trace, page, plan=plan_for(1024))
    frame.write_text(
        "<!doctype html><iframe src='report.html' style='width:390px;height:6000px'></iframe><script>"
        "const poll = () => { const inner = document.querySelector('iframe').contentDocument;"
        "if (inner?.body?.dataset.state !== 'drawn') return setTimeout(poll, 100);"
        "const wide = [...inner.querySelectorAll('.main-svg, td')].map((x) =>"
        " x.getBoundingClientRect().right);"
        "document.body.dataset.right = Math.max(...wide, inner.documentElement.scrollWidth); }; poll();"
        "</script>"
    )
    document, _ = opened(chromium, frame, tmp_path / "profile", "--allow-file-access-from-files")
    right = re.search(r'data-right="([\d.]+)"', document)
    assert right is not None and float(right[1]) <= 390
