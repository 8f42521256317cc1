"""Names that programs, files and users choose reach terminals, pages and XML as text, whatever is in them."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from numaplan.machine import Machine
from numaplan.profiler.backends.choice import backend_of
from tests.support.commands import run
from tests.support.traces import write_trace

pytestmark = pytest.mark.system

# A terminal would change its title, colour and cursor (also by a C1 control) and the order of letters;
# rich would take the rest for markup.
HOSTILE = "\x1b]0;title\x07\x1b[31mred\x9b2J\u202e[/bold][link=x]<b>&"
FORBIDDEN = [letter for letter in HOSTILE if not letter.isprintable()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with trace.db, machine.json and plan.json, hostile wherever a text is free."""
    folder = tmp_path_factory.mktemp("hostile")
    nodes = [{"id": 0, "cpus": [0, 1]}, {"id": 1, "cpus": [2, 3]}]
    machine = {"schema": "numaplan/machine/1", "name": HOSTILE, "nodes": nodes}
    (folder / "machine.json").write_text(json.dumps(machine))
    count = 4000
    random = np.random.default_rng(1)
    write_trace(
        folder / "trace.db",
        {
            "time_ns": np.arange(count),
            "thread": random.integers(0, 4, count),
            "addr": 0x10000 + random.integers(0, 1 << 16, count) // 64 * 64,
            "is_write": random.integers(0, 2, count) == 1,
            "region": 0,
        },
        [(n, "p0", f"0.{n}" if n else "0", 10 + n, 10, HOSTILE, 0, count) for n in range(4)],
        [(0, "p0", "heap", HOSTILE, "", 0x10000, 1 << 16, "0", 1, 0, count)],
        {"argv": json.dumps([HOSTILE, "x"]), "backend_why": HOSTILE, "warnings": HOSTILE, "period": 1},
        machine=str(folder / "machine.json"),
    )
    made = run("nmap", "plan", "trace.db", "--machine", "machine.json", "-o", "plan.json", cwd=folder)
    assert made.returncode == 0, made.stderr
    assert_plain(made.stdout + made.stderr)
    return folder


def assert_plain(output: bytes) -> None:
    text = output.decode()
    assert text
    assert not [letter for letter in FORBIDDEN if letter in text], text


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("nprof", "info", "trace.db"),
        ("nmap", "analyze", "trace.db"),
        ("nmap", "show", "plan.json"),
        ("nmap", "diff", "plan.json", "plan.json"),
        ("nmap", "machine", "machine.json"),
        ("nmap", "compare", "trace.db", "--machine", "machine.json"),
        ("nmap", "check", "trace.db", "--baseline", "plan.json", "--junit", "junit.xml"),
        ("nmap", "report", "trace.db", "-o", "page.html"),
        ("nmap", "analyze", "trace.db", "--to", "graphs", "--format", "graphml"),
        ("nprof", "info", HOSTILE),
        ("nmap", "plan", "trace.db", "--machine", HOSTILE),
        ("nlaunch", "--plan", HOSTILE, "--", "true"),
        ("nlaunch", "--plan", "plan.json", "--", "true"),
        ("nprof", "record", "--", HOSTILE),
        ("nlab", "run", "--machine", HOSTILE, "--", "true"),
    ],
    ids=lambda words: " ".join(words[:3]).replace(HOSTILE, "HOSTILE"),
)
def test_they_are_shown_as_text(files: Path, words: tuple[str, ...]) -> None:
    result = run(*words, cwd=files)
    assert b"internal error" not in result.stderr
    assert_plain(result.stdout + result.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("nprof", "info", "trace.db"),
        ("nmap", "machine", "machine.json"),
        ("nmap", "analyze", "trace.db"),
        ("nmap", "compare", "trace.db", "--machine", "machine.json"),
        ("nmap", "check", "trace.db", "--baseline", "plan.json"),
        ("nmap", "plan", "trace.db", "--machine", "machine.json", "-o", "again.json"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_json_is_text_that_means_them(files: Path, words: tuple[str, ...]) -> None:
    result = run(*words, "--json", cwd=files)
    assert result.returncode == 0, result.stderr
    assert_plain(result.stdout)
    assert isinstance(json.loads(result.stdout), dict)


def test_a_summary_of_a_recording_is_text(tmp_path: Path) -> None:
    if not backend_of("emulate").available(Machine.load("2x2")).ok:
        pytest.skip("nothing can be recorded here")
    trace = "\x1b[31m\x9b2J\u202e.db"
    words = ("nprof", "record", "--backend", "emulate", "--period", "100", "-o", trace)
    result = run(*words, "--summary", "summary.json", "--", "true", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    written = (tmp_path / "summary.json").read_bytes()
    assert_plain(written)
    assert json.loads(written)["runs"][0]["trace"] == trace


@pytest.mark.slow
def test_files_for_others_can_be_read(files: Path) -> None:
    run("nmap", "check", "trace.db", "--baseline", "plan.json", "--junit", "junit.xml", cwd=files)
    run("nmap", "report", "trace.db", "-o", "page.html", cwd=files)
    run("nmap", "analyze", "trace.db", "--to", "graphs", "--format", "graphml", cwd=files)
    written = [files / "junit.xml", *sorted((files / "graphs").iterdir()), files / "page.html"]
    assert len(written) > 2
    for file in written:
        assert_plain(file.read_bytes())
        if file.suffix != ".html":
            ElementTree.parse(file)
