"""Programs that nobody here wrote: record, plan, launch; their output is what it is without us."""

import hashlib
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import needs, succeed
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.system

PYTHON = "/usr/bin/python3"  # Debian's own: its numpy uses the system's OpenBLAS
MATRIX_PRODUCT = """
import hashlib, numpy
a = (numpy.arange(160 * 160) % 7).reshape(160, 160).astype(float)
for _ in range(4):
    a = (a @ a) % 7
print(hashlib.sha256(a.tobytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A megabyte that compresses like text, in blocks enough for eight threads."""
    chooser = random.Random(5)
    words = [bytes(chooser.choices(b"abcdefghij", k=chooser.randrange(2, 9))) for _ in range(500)]
    path = tmp_path_factory.mktemp("input") / "text"
    path.write_bytes(b" ".join(chooser.choices(words, k=150_000)))
    return path


def program(name: str, text: Path) -> list[str]:
    if name == "numpy":
        if subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True, check=False).returncode:
            pytest.skip("Debian's python3-numpy is not installed")
        return [PYTHON, "-c", MATRIX_PRODUCT]
    needs(name)
    return {
        "pigz": ["pigz", "-p", "8", "-b", "64", "-n", "-c", str(text)],
        "xz": ["xz", "-T8", "-1", "--block-size=131072", "-c", str(text)],
        "zstd": ["zstd", "-q", "-T8", "-B131072", "-c", str(text)],
        "gm": ["gm", "convert", "-size", "240x240", "gradient:red-blue", "-blur", "0x4", "ppm:-"],
    }[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pigz", "xz", "zstd", "numpy", "gm"])
def test_record_plan_launch(name: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("qemu-x86_64")
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    words = program(name, text)
    plain = subprocess.run(words, capture_output=True, check=True, timeout=PATIENCE_S).stdout
    recorded = succeed("nprof", "record", "-o", tmp_path / "trace.db", "--", *words)
    assert digest(recorded) == digest(plain)
    succeed("nmap", "plan", tmp_path / "trace.db", "--machine", "4x2", "-o", tmp_path / "plan.json")
    launched = succeed("nlaunch", "--plan", tmp_path / "plan.json", "--remap", "--", *words, cwd=tmp_path)
    assert digest(launched) == digest(plain)


def digest(data: bytes) -> str:
    return f"{len(data)} bytes, {hashlib.sha256(data).hexdigest()}"


def test_faults_backend_on_a_debian_program(text: Path, tmp_path: Path) -> None:
    needs("perf")
    if os.geteuid() != 0 and shutil.which("perf") is None:
        pytest.skip("perf needs privileges here")
    words = program("pigz", text)
    plain = subprocess.run(words, capture_output=True, check=True, timeout=PATIENCE_S).stdout
    recorded = succeed("nprof", "record", "--backend", "faults", "-o", tmp_path / "t.db", "--", *words)
    assert digest(recorded) == digest(plain)
