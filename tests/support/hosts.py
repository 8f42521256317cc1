"""Hosts of a cluster on this machine, as examples/hosts.sh makes them, and Slurm on them.

Nothing of them outlives their input: all they run is in one pid namespace, whose first process ends with it.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import IO

import pytest

from tests.support.commands import BIN, clean_environment, needs
from tests.support.outside import children, comm
from tests.support.programs import EXAMPLES
from tests.support.waiting import PATIENCE_S, until

SCRIPT = EXAMPLES / "hosts.sh"
MUNGE, CONTROLLER, DAEMON = "munged", "slurmctld", "slurmd"
SET = "HOSTS_|HYDRA_|OMPI_|TMPDIR="  # how the names of what the script sets begin
SLURM = """
ClusterName=test
SlurmctldHost=h0
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge
CredType=cred/munge
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/linear
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
MessageTimeout=100
NodeName={nodes} CPUs=4
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE
"""


class Hosts:
    """Hosts h0, h1, …; what is run on them begins on h0."""

    def __init__(self, target: int, environment: Mapping[str, str], names: Sequence[str]) -> None:
        """target: a process on h0; environment: what the script sets."""
        self.environment, self.names = environment, names
        self.folder = Path(environment["HOSTS_FOLDER"])
        self.started: list[subprocess.Popen[str]] = []
        self._target = str(target)

    def run(
        self, words: Sequence[str | Path], place: Path, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """What a command on h0 says, in a folder."""
        process = self._start(words, place, subprocess.PIPE, environment)
        try:
            said, errors = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as error:  # what it started ends with the hosts
            process.kill()
            pytest.fail(f"{words} does not end; it said {error.stdout!r}, {error.stderr!r}")
        return subprocess.CompletedProcess(process.args, process.returncode, said, errors)

    def serve(self, words: Sequence[str | Path], name: str, **environment: str) -> "subprocess.Popen[str]":
        """A command on h0 that runs as long as the hosts, and says in a file what it has to say."""
        with self.log(name).open("w") as output:
            return self._start(words, self.folder, output, environment)

    def log(self, name: str) -> Path:
        """Where a command that serves writes."""
        return self.folder / f"{name}.out"

    def _start(
        self,
        words: Sequence[str | Path],
        place: Path,
        output: int | IO[str],
        environment: Mapping[str, str],
    ) -> "subprocess.Popen[str]":
        spaces = ("--pid", "--mount", "--uts", "--net", "--ipc")
        process = subprocess.Popen(
            ["nsenter", "--target", self._target, *spaces, "env", "-C", str(place), *map(str, words)],
            env={**clean_environment(), **self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
        )
        self.started.append(process)
        return process


@contextmanager
def hosts(number: int) -> Iterator[Hosts]:
    """So many of them; skips the test where they may not be made."""
    needs("unshare", "nsenter", "ip")
    if os.geteuid() != 0:
        pytest.skip("only root may enter the hosts' namespaces")
    spaces = ("--pid", "--net", "--mount", "--uts", "--ipc", "--fork", "--mount-proc")
    links = "ip link add switch0 type bridge && ip link add cable0 type veth peer name eth0"
    tried = subprocess.run(
        ["unshare", *spaces, "sh", "-c", links], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"no namespaces may be made here: {tried.stderr.strip()}")
    words = ["sh", SCRIPT, str(number), "sh", "-c", f"env | grep -E '^({SET})'; echo; exec cat"]
    with subprocess.Popen(
        words, env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdin and starter.stdout
        with starter.stdin:
            lines = takewhile(lambda line: line != "\n", starter.stdout)
            environment = dict(line.rstrip("\n").split("=", 1) for line in lines)
            assert environment, "the hosts could not be made"
            target: list[int] = []

            def found() -> bool:
                target[:] = [pid for pid in children(starter.pid) if comm(pid) == "cat"]
                return bool(target)

            until(found)
            made = Hosts(target[0], environment, [f"h{host}" for host in range(number)])
            yield made
    for process in made.started:
        process.communicate()


@contextmanager
def slurm(on: Hosts) -> Iterator[dict[str, str]]:
    """Slurm on these hosts, all of its nodes idle; the environment that its commands need."""
    needs(MUNGE, CONTROLLER, DAEMON, "srun")
    key, configuration = on.folder / "munge.key", on.folder / "slurm.conf"
    key.touch(0o600)
    key.write_bytes(os.urandom(1024))
    configuration.write_text(SLURM.format(folder=on.folder, nodes=",".join(on.names)))
    environment = {"SLURM_CONF": str(configuration)}
    daemons = {MUNGE: on.serve(_munge(on.folder), MUNGE)}
    until((on.folder / "munge").exists)
    daemons[CONTROLLER] = on.serve([_tool(CONTROLLER), "-D"], CONTROLLER, **environment)
    for name in on.names:
        words = [on.folder / "enter", name, _tool(DAEMON), "-D"]
        daemons[name] = on.serve(words, name, **environment)

    def ready() -> bool:
        for name, daemon in daemons.items():
            assert daemon.poll() is None, on.log(name).read_text()
        states = on.run(["sinfo", "--noheader", "--Node", "--format=%T"], on.folder, **environment)
        return states.stdout.split() == ["idle"] * len(on.names)

    until(ready)
    yield environment


def _munge(folder: Path) -> list[str]:
    """munged with a key, a socket and files of its own; not as careful as usual about where they are."""
    files = {"key-file": "munge.key", "socket": "munge", "pid-file": "munged.pid", "seed-file": "munge.seed"}
    options = [f"--{option}={folder / name}" for option, name in files.items()]
    return [_tool(MUNGE), "--foreground", "--force", f"--log-file={folder / 'munged.log'}", *options]


def _tool(name: str) -> str:
    return shutil.which(name) or name


def with_our_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a shell that finds our commands."""
    return {**environment, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
