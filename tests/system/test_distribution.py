"""The distribution as others get it: an sdist, the wheel built from it, and that wheel installed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import needs

pytestmark = [pytest.mark.system, pytest.mark.slow]

BUILD = "import sys, setuptools.build_meta as backend; print(backend.build_{kind}(sys.argv[1]))"


def build(kind: str, source: Path, target: Path) -> Path:
    """An sdist or wheel of a source tree, made by the build backend in a process of its own."""
    compiler = target / "quick-cc"  # `make setup` compiles as it should be: this takes half the time
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0 -g0\n')
    compiler.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(kind=kind), target],
        cwd=source, capture_output=True, text=True, check=False, timeout=240,
        env={**os.environ, "CC": str(compiler)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return target / done.stdout.splitlines()[-1]


def test_wheel_from_sdist_works(repository: Path, tmp_path: Path) -> None:
    needs("cc", "git")
    listed = subprocess.run(["git", "ls-files"], cwd=repository, capture_output=True, text=True, check=False)
    if listed.returncode or not listed.stdout:
        pytest.skip("not a git checkout")
    clean = tmp_path / "clean"
    for name in listed.stdout.splitlines():
        if (repository / name).is_file() or (repository / name).is_symlink():
            (clean / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(repository / name, clean / name, follow_symlinks=False)
    dist = tmp_path / "dist"
    dist.mkdir()
    sdist = build("sdist", clean, dist)
    shutil.unpack_archive(sdist, tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    wheel = build("wheel", unpacked, dist)

    # Installed beside the libraries of this environment, but not beside the checkout.
    site = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--target",
        site,
        wheel,
    ]
    subprocess.run(pip, check=True, timeout=120)
    natives = sorted(str(path.relative_to(site)) for path in site.rglob("*.so"))
    assert "numaplan/profiler/native/emulate.so" in natives
    assert "numaplan/profiler/native/preload.so" in natives
    assert "numaplan/mapper/native/solver.so" in natives
    assert "numaplan/launcher/native/enforce.so" in natives
    environment = {**os.environ, "PYTHONPATH": str(site)}
    script = (
        "import numaplan.mapper as m, numpy as np; from numaplan.profiler import Machine;"
        "print(m.__file__);"
        "print(m.map_threads(np.ones((4, 4)) - np.eye(4), np.ones(4), Machine.load('2x2')).tolist())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=True,
    )
    place, nodes = ran.stdout.splitlines()
    assert place.startswith(str(site))
    assert sorted(json.loads(nodes)) == [0, 0, 1, 1]
