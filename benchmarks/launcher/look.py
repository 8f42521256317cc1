"""`numaplan look` on programs whose placement is wrong or right: what it finds, and what its cures do.

Each runs in the lab, where accesses are counted. The snapshots that were looked at are kept in
build/look/snapshots.json.xz, which the unit tests have a copy of.
"""

import lzma
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from numaplan.lab.runs.session import Request, open_session
from numaplan.machine import Machine
from tests.support import looking
from tests.support.commands import succeed
from tests.support.guests import SharedGuest, silent
from tests.support.looking import (
    FAULTS,
    HEALTHY,
    Case,
    Looked,
    run_case,
    run_counted,
    run_cured,
    work_program,
)

SNAPSHOTS = Path("build/look/snapshots.json.xz")
MACHINE = "4x2"
# Memory of one thread elsewhere; of four threads, spread as they are, but each one's part on the next node.
COMMANDED = ("2-3:t0:48", "0:t1:24 2:t2:24 4:t3:24 6:t0:24")


def run() -> dict[str, Any]:
    """Look at each fault, cure it and count again; look at each healthy program."""
    kept: dict[str, str] = {}
    with ExitStack() as stack:
        started = perf_counter()
        guests = {machine.name: _booted(machine, stack) for machine in (looking.MACHINE, looking.TIERED)}
        faults = [_fault(guests[case.machine.name], case, kept) for case in FAULTS]
        healthy = [_healthy(guests[case.machine.name], case, kept) for case in HEALTHY]
        seconds = perf_counter() - started
        itself = [_command(guests[MACHINE], words) for words in COMMANDED]
    SNAPSHOTS.parent.mkdir(parents=True, exist_ok=True)
    SNAPSHOTS.write_bytes(lzma.compress(msgspec.json.encode(kept), preset=9))
    return {
        "faults": faults,
        "healthy": healthy,
        "faults named": f"{sum(row['found'] == row['expected'] for row in faults)} of {len(faults)}",
        "healthy without a finding": f"{sum(not row['found'] for row in healthy)} of {len(healthy)}",
        "seconds": seconds,
        "the command itself": itself,
    }


def _booted(machine: Machine, stack: ExitStack) -> SharedGuest:
    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "machine.json"
    path.write_bytes(machine.to_json())
    return SharedGuest(stack.enter_context(open_session(Request(["/bin/true"], str(path)), silent)))


def _look(guest: SharedGuest, case: Case, kept: dict[str, str]) -> Looked:
    folder = Path(tempfile.mkdtemp())
    try:
        looked = run_case(guest, case, folder)
    finally:
        shutil.rmtree(folder)
    kept[case.name] = looked.said.replace(str(work_program()), "/opt/work")
    return looked


def _fault(guest: SharedGuest, case: Case, kept: dict[str, str]) -> dict[str, Any]:
    looked = _look(guest, case, kept)
    found = ", ".join(finding.name for finding in looked.answer.findings)
    row = {"program": case.name, "expected": case.finding, "found": found, "local before": looked.local_share}
    if found == case.finding:
        finding = looked.answer.findings[0]
        planned = finding.name == "memory-on-one-node"
        row["local after"] = _planned(guest, case) if planned else run_cured(guest, case, looked)
        row["cure"] = "; ".join(finding.cure).replace(str(work_program()), "work")
    return row


def _planned(guest: SharedGuest, case: Case) -> float:
    """The share with the plan of a recording, which is the cure of what each thread has its part of."""
    argv = [str(work_program()), *case.words.split()]
    with tempfile.TemporaryDirectory() as name:
        trace, plan = f"{name}/trace.db", f"{name}/plan.json"
        succeed("nprof", "record", "-o", trace, "--backend", "emulate", "--", *argv)
        succeed("nmap", "plan", trace, "--machine", MACHINE, "-o", plan)
        share: float = run_counted(guest, argv, {}, config="plan", plan=plan)[1]["local_share"]
    return share


def _healthy(guest: SharedGuest, case: Case, kept: dict[str, str]) -> dict[str, Any]:
    looked = _look(guest, case, kept)
    found = ", ".join(finding.name for finding in looked.answer.findings)
    return {"program": case.name, "found": found, "local": looked.local_share, "reason": looked.answer.reason}


def _command(guest: SharedGuest, words: str) -> dict[str, Any]:
    """What `numaplan look` says when it runs on the machine that has the nodes, and the lab's sampler."""
    command = Path(sys.executable).with_name("numaplan")
    script = (
        f"{work_program()} {words} & program=$!\n{command} look $program --json --seconds 1\nkill $program"
    )
    content = msgspec.json.decode(run_counted(guest, ["sh", "-c", script], {"ENDLESS": "1"})[0])
    found = [f"{finding['name']}: {finding['cost']}" for finding in content["findings"]]
    return {"words": words, "found": ", ".join(found), "seconds": content["seconds"]}
