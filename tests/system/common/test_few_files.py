"""Where few files may be open a command does its work, or says how to allow more."""

import subprocess
from pathlib import Path

import pytest

from tests.support.commands import BIN
from tests.support.launching import plan_for

pytestmark = [pytest.mark.system, pytest.mark.slow]

COMMANDS = {
    "a plan": "nmap plan --comm comm.csv --machine 2x1 -o new.json",
    "a launch": "nlaunch --plan plan.json -- /bin/true",
    "by ptrace": "nlaunch --by ptrace --plan plan.json -- /bin/true",
    "online": "nlaunch --online numaplan -- /bin/true",
    "page faults": "nprof record --backend faults -o t.db -- /bin/true",
    "emulated": "nprof record --backend emulate --period 1 -o t.db -- /bin/true",
    "in the lab": "nlab run --machine 2x1 -- /bin/true",
    "what can be done": "nprof doctor",
}


@pytest.mark.parametrize("most", [6, 10, 12])
@pytest.mark.parametrize("what", COMMANDS)
def test_it_works_or_says_how(tmp_path: Path, what: str, most: int) -> None:
    (tmp_path / "comm.csv").write_text("0,1\n1,0\n")
    plan_for(["/bin/true"]).save(tmp_path / "plan.json")
    words = COMMANDS[what].split()
    limited = ["sh", "-c", f'ulimit -n {most}; exec "$@"', "sh", str(BIN / words[0]), *words[1:]]
    done = subprocess.run(
        limited, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    errors = [line for line in done.stderr.splitlines() if " error: " in line]
    if done.returncode == 0:
        assert errors == []
    else:
        assert done.returncode == 3 and len(errors) == 1, done.stderr
        assert "ulimit -n" in errors[0], done.stderr
