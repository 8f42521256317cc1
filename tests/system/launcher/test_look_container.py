"""`numaplan look` at a container that podman really runs, made of nothing but a static program."""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from numaplan.common import temporary_folder
from tests.support.commands import needs, one_line_error, run, succeed
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.system
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")  # as low as may be had everywhere
WAITS = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"


def engine(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """podman, with all that it keeps in a folder."""
    runtime = ["--runtime", "runc"] if shutil.which("runc") else []
    own = ["--root", str(folder / "root"), "--runroot", str(folder / "run"), "--storage-driver", "vfs"]
    command = ["podman", *runtime, *own, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.fixture
def container() -> Iterator[str]:
    """The id of one that waits."""
    needs("podman", "gcc")
    if os.geteuid() != 0:
        pytest.skip("podman is tried as root only")
    with temporary_folder("numaplan-") as folder:  # whose name is short enough for podman
        yield from running(folder)


def running(folder: Path) -> Iterator[str]:
    (folder / "waits.c").write_text(WAITS)
    subprocess.run(["gcc", "-static", "-o", folder / "waits", folder / "waits.c"], check=True)
    with tarfile.open(folder / "image.tar", "w") as image:
        image.add(folder / "waits", "waits")
    made = engine(folder, "import", "-q", folder / "image.tar", "numaplan-test:1")
    if made.returncode == 0:
        made = engine(folder, "run", "-d", "--network", "none", *LIMITS, "numaplan-test:1", "/waits")
    try:
        if made.returncode:
            pytest.skip(f"podman runs no container here: {made.stderr.strip()[-120:]}")
        yield made.stdout.strip()
    finally:
        engine(folder, "rm", "-f", "-a")


def test_a_container_is_looked_at_by_its_id(container: str) -> None:
    for name in (container, container[:12]):
        words = ("look", "--container", name, "--seconds", "0.1", "--json")
        (process,) = msgspec.json.decode(succeed("numaplan", *words))["processes"]
        assert process["command"] == ["/waits"]
    told = run("numaplan", "look", "--container", "f" * 12)
    assert "no running container" in one_line_error(told, "numaplan look", 2)
