"""Scripts without `#!`, which shells run; programs that may not be read; arguments of any bytes."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from numaplan.common import is_for_shell, started_as
from numaplan.machine import Machine
from numaplan.profiler import Trace, executable_of
from numaplan.profiler.backends.choice import backend_of
from tests.support.commands import BIN, one_line_error, run, succeed
from tests.support.launching import nlaunch, plan_for

pytestmark = pytest.mark.system

SAYS = 'echo "$0 $# $1"; exit 3\n'
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.fixture(params=[SAYS, f"#!\n{SAYS}", f"\n\n# ü\n{SAYS}"], ids=["plain", "no interpreter", "comment"])
def script(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = tmp_path / "a script"
    path.write_text(request.param)
    path.chmod(0o755)
    return str(path)


def test_launched(tmp_path: Path, script: str) -> None:
    expected = (3, f"{script} 2 x y\n".encode())
    result, applied = nlaunch(plan_for(["/bin/sh", script]), tmp_path, [script, "x y", "z"])
    assert (result.returncode, result.stdout) == expected
    assert result.stderr.strip() == b"nlaunch: 1/1 threads as planned" and applied["threads"]
    for words in (("--auto", "--store", tmp_path / "store"), ("--online", "excl")):
        found = run("nlaunch", *words, "--", script, "x y", "z")
        assert (found.returncode, found.stdout) == expected, found.stderr


def test_found_in_the_store(tmp_path: Path, script: str) -> None:
    plan = tmp_path / "plan.json"
    plan_for(["/bin/sh", script]).save(plan)
    succeed("nmap", "store", "put", plan, "--store", tmp_path / "store", "--", script, "x")
    result = run("nlaunch", "--auto=require", "--store", tmp_path / "store", script, "x")
    assert result.returncode == 3, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["faults", "emulate"])
def test_recorded(tmp_path: Path, script: str, backend: str) -> None:
    if not backend_of(backend).available(Machine.load("local")).ok:
        pytest.skip(f"{backend} does not work here")
    trace = tmp_path / "t.db"
    result = run(
        "nprof", "record", "--backend", backend, "--period", "1", "-o", trace, "--", script, "x", "y"
    )
    assert (result.returncode, result.stdout) == (3, f"{script} 2 x\n".encode()), result.stderr
    with Trace.open(trace) as opened:
        assert opened.argv == [script, "x", "y"] and opened.sample_count


def test_what_the_kernel_starts_stays_as_it_is(tmp_path: Path, script: str) -> None:
    assert started_as([script, "x"]) == ["/bin/sh", script, "x"]
    assert executable_of(script) == executable_of("/bin/sh")
    for head in (b"\x7fELF\x02\x01", b"#!/bin/sh\n", b"#! /usr/bin/env python\n", b"MZ\x90\0\x03"):
        assert not is_for_shell(head)
    for words in (["/bin/true"], ["true", "x"], ["absent"], [str(tmp_path)], []):
        assert started_as(words) == words


@pytest.mark.skipif(os.geteuid() != 0, reason="root lets others be nobody")
def test_a_program_that_may_not_be_read() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # of pytest's nobody may read none
        folder, program = Path(name), Path(name) / "secret"
        folder.chmod(0o777)
        shutil.copy("/bin/echo", program)
        program.chmod(0o711)
        able = subprocess.run(
            [*NOBODY, BIN / "nmap", "--version"], capture_output=True, check=False, cwd=name
        )
        if able.returncode:
            pytest.skip("nobody may not run our commands")
        words = [*NOBODY, "env", f"HOME={folder}", BIN / "nlaunch", "--auto", program, "hello"]
        done = subprocess.run(words, capture_output=True, check=False, cwd=name)
        assert (done.returncode, done.stdout) == (0, b"hello\n")
        assert b"cannot be read" in done.stderr and b"neither" not in done.stderr
        words = [*NOBODY, "env", f"HOME={folder}", BIN / "nprof", "record", "--backend", "emulate", program]
        said = one_line_error(subprocess.run(words, capture_output=True, check=False, cwd=name), "nprof", 2)
        assert "Permission denied" in said and "can be read" in said


@pytest.mark.slow
def test_an_argument_that_is_not_utf8(tmp_path: Path) -> None:
    trace = tmp_path / "t.db"
    words = [BIN / "nprof", "record", "--backend", "faults", "-o", trace, "--", "/bin/echo", "1", b"a\xffb"]
    done = subprocess.run(words, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"1 a\xffb\n"), done.stderr
    facts = json.loads(succeed("nprof", "info", trace, "--json"))
    assert facts["app"]["argv"] == ["/bin/echo", "1", "a\ufffdb"]
    assert "/bin/echo 1 'a\ufffdb'".encode() in succeed("nprof", "info", trace)
