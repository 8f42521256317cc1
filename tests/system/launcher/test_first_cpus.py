"""Programs are on their plan's cpus before their loader begins: what it reads and writes stays on the node
where it ran."""

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from numaplan.launcher import LIBRARY
from numaplan.mapper import Plan
from tests.support.launching import build, nlaunch
from tests.support.outside import plan_of_threads
from tests.support.programs import PROGRAMS, STRICT, compiled

pytestmark = pytest.mark.system
PYTHON = "/usr/bin/python3"
BY_PYTHON = "import os, subprocess; program, changed = '{1}', dict(os.environ, LD_AUDIT='{0}'); "
SPAWN = "os.waitpid(os.posix_spawn(program, [program], changed), 0)"
VFORK = "subprocess.run([program], close_fds=False, cwd='/', env=changed)"
WAYS = {
    "exec": ["env", "LD_AUDIT={0}", "{1}"],
    "fork": ["sh", "-c", "LD_AUDIT={0} {1} & wait"],
    "shell": ["sh", "-c", "LD_AUDIT={0} {1}; exit 0"],
    "vfork": [PYTHON, "-c", BY_PYTHON + VFORK],
    "posix_spawn": [PYTHON, "-c", BY_PYTHON + SPAWN],
}


def needs(path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"no {path} here")


def audit() -> Path:
    """A library that says on which cpus a program begins, for LD_AUDIT."""
    flags = (*STRICT, "-shared", "-fPIC")
    return compiled(PROGRAMS / "launcher/first_cpus.c", flags=flags, name="first_cpus.so")


def plan_of(children: int) -> Plan:
    """The main threads of a program and of so many of its children."""
    return plan_of_threads([("p0", "0"), *((f"p0.{number}", "0") for number in range(1, children + 1))])


@pytest.mark.parametrize("way", WAYS)
def test_however_a_program_is_started(tmp_path: Path, way: str) -> None:
    argv = [word.format(audit(), build("affinity")) for word in WAYS[way]]
    needs(shutil.which(argv[0]) or argv[0])
    alone = subprocess.run([build("affinity")], capture_output=True, check=True)
    plan = plan_of(1)
    result, _ = nlaunch(plan, tmp_path, argv)
    cpus = plan.threads[way != "exec"].cpus
    assert result.stdout == f"starts on {cpus[0]}\n".encode() + alone.stdout, result.stderr


EACH_TO_A_FILE = """
for number in range(1, 5):
    out = [(os.POSIX_SPAWN_OPEN, 1, f'{2}/out{{number}}', os.O_WRONLY | os.O_CREAT, 0o600)]
    os.posix_spawn(program, [program], changed, file_actions=out)
for _ in range(4): os.wait()
"""


def test_children_that_are_started_one_after_the_other_have_a_number_each(tmp_path: Path) -> None:
    """Each is told its own before those before it can say that they are there."""
    needs(PYTHON)
    script = (BY_PYTHON + EACH_TO_A_FILE).format(audit(), build("affinity"), tmp_path)
    plan = plan_of(4)
    result, _ = nlaunch(plan, tmp_path, [PYTHON, "-c", script])
    begun = [(tmp_path / f"out{number}").read_text().splitlines()[0] for number in range(1, 5)]
    assert begun == [f"starts on {thread.cpus[0]}" for thread in plan.threads[1:]], result.stderr


NO_ROOM = """
file = os.open(os.environ['NUMAPLAN_LOG'] + '/control', os.O_RDWR)
os.pwrite(file, os.pread(file, 4, 16), 20)
"""


RELATIVE = "folder, name = os.path.split(program); os.chdir(folder); program = './' + name\n"
NOT_KNOWN = {
    "no room for its name, spawn": NO_ROOM + SPAWN,
    "no room for its name, vfork": NO_ROOM + VFORK,
    "posix_spawn may change the folder first": RELATIVE + SPAWN,
}


@pytest.mark.parametrize("way", NOT_KNOWN)
def test_a_child_of_which_it_is_not_known_who_it_will_be_has_all_cpus(tmp_path: Path, way: str) -> None:
    """Nothing would take it off those of a plan."""
    needs(PYTHON)
    program, library = build("affinity"), audit()
    script = BY_PYTHON.format(library, program) + NOT_KNOWN[way]
    alone = subprocess.run(["env", f"LD_AUDIT={library}", program], capture_output=True, check=True)
    result, _ = nlaunch(plan_of(1), tmp_path, [PYTHON, "-c", script])
    assert (result.stdout, result.returncode) == (alone.stdout, 0)


AS_NOBODY = """
import os, sys
program, library, folder = *sys.argv[1:], os.environ["NUMAPLAN_LOG"]
for path, mode in ((folder, 0o755), (f"{folder}/control", 0o666)):
    os.chmod(path, mode)
os.setgroups([]), os.setgid(65534), os.setuid(65534)
os.execve(program, [program], dict(os.environ, LD_AUDIT=library))
"""


@pytest.fixture
def others_folder() -> Iterator[Path]:
    """One that everybody may look into; skips where nobody else can be, or may load the library."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv, to be somebody else")
    needs(PYTHON)
    loads = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-r", str(LIBRARY)]
    if subprocess.run(loads, check=False).returncode:
        pytest.skip("others may not read this checkout")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_also_as_another_user_who_may_read_what_it_needs(tmp_path: Path, others_folder: Path) -> None:
    """As a server does that root starts in the lab."""
    program, library = (shutil.copy(path, others_folder) for path in (build("affinity"), audit()))
    plan = plan_of(0)
    result, _ = nlaunch(plan, tmp_path, [PYTHON, "-c", AS_NOBODY, program, library])
    assert result.stdout.startswith(f"starts on {plan.threads[0].cpus[0]}\n".encode()), result.stderr


def test_but_not_if_the_program_has_privileges_of_its_own(tmp_path: Path, others_folder: Path) -> None:
    """Its loader leaves the library out."""
    program = shutil.copy(build("affinity"), others_folder)
    may_bind_to_low_ports = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)
    try:
        os.setxattr(program, "security.capability", may_bind_to_low_ports)
        alone = subprocess.run([program], user=65534, group=65534, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"files have no capabilities here ({error})")
    result, _ = nlaunch(plan_of(0), tmp_path, [PYTHON, "-c", AS_NOBODY, program, ""])
    assert (result.stdout, result.returncode) == (alone.stdout, 0), result.stderr
