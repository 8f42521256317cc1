"""The documentation is true where that is cheap to see: links, paths, options, length of the README."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README, INDEX = ROOT / "README.md", ROOT / "docs/README.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("news/*.md")])
GUIDES = [README, *sorted(ROOT.glob("docs/guide/*.md")), *sorted(ROOT.glob("docs/reference/*.md"))]
COMMANDS = {
    "nprof": ("doctor", "record", "import", "info", "export"),
    "nmap": (
        *("machine", "cluster", "analyze", "report", "reduce", "plan", "compare", "check"),
        *("show", "diff", "export"),
        *("store put", "store list", "store show", "store drop"),
    ),
    "nlaunch": ("",),
    "nlab": ("setup", "doctor", "run", "compare", "cluster"),
}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FOLDERS = "common|machine|profiler|analyzer|mapper|launcher|lab|benchmarks|tests|examples|docs|scripts"
CODE_PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*-]*)`")
COMMAND_LINE = re.compile(
    rf"\b({'|'.join(COMMANDS)})(?: ((?:store )?[a-z]+))?((?:(?! -- |`|#|{'|'.join(COMMANDS)}).)*)"
)
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
EVERYWHERE = {"--help", "-h", "--debug", "--version"}
# What the pages on extending have one write.
EXAMPLES = {"annotated.py", "folded.py", "homing.py", "test_homing.py"}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def anchors(page: Path) -> set[str]:
    """The anchors that a forge makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[tuple[Path, str]]:
    """(target, anchor or nothing) of each link to a file."""
    parts = [link.partition("#") for link in LINK.findall(page.read_text()) if not link.startswith("http")]
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in parts]


@cache
def options_of(tool: str, command: str) -> frozenset[str]:
    """The options that a command's help names."""
    script = Path(sys.executable).with_name(tool)
    shown = subprocess.run(
        [script, *command.split(), "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "200", "NO_COLOR": "1"},
    )
    return frozenset(OPTION.findall(shown.stdout))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_resolve(page: Path) -> None:
    broken = [
        (target.name, anchor)
        for target, anchor in links(page)
        if not target.exists() or (anchor and anchor not in anchors(target))
    ]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_of_the_code_exist(page: Path) -> None:
    paths = {path for path in CODE_PATH.findall(page.read_text()) if Path(path).name not in EXAMPLES}
    assert not [path for path in paths if not list(ROOT.glob(path.rstrip("/")))]


def test_every_page_is_linked_from_the_index_of_its_folder() -> None:
    indexes = (README, INDEX, ROOT / "docs/results/README.md")
    linked = {target for index in indexes for target, _ in links(index)}
    assert not {page for page in ROOT.glob("docs/**/*.md") if page not in linked}


def test_the_readme_fits_on_a_few_screens() -> None:
    assert len(README.read_text().splitlines()) <= 120


@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_commands_have_the_options_that_guides_give_them(page: Path) -> None:
    wrong = []
    for tool, command, words in COMMAND_LINE.findall(page.read_text()):
        known = command if command in COMMANDS[tool] else ""
        options = set(OPTION.findall(words))
        if options and not options <= options_of(tool, known) | EVERYWHERE:
            wrong.append((tool, command, sorted(options - options_of(tool, known))))
    assert not wrong


@pytest.mark.parametrize(("tool", "command"), [(tool, one) for tool in COMMANDS for one in COMMANDS[tool]])
def test_every_option_stands_in_a_guide(tool: str, command: str) -> None:
    named = {option for page in GUIDES for option in OPTION.findall(page.read_text())}
    assert options_of(tool, command) - EVERYWHERE <= named
