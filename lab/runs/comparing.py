"""`nlab compare`: a program under several configurations in one boot, and the gates on the result."""

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import BinaryIO

from numaplan.common import NotSoError, UsageError

from ..guest.control import QemuFaultError
from .configs import parse_configs
from .gate import Verdict, check_gate, gate_names
from .results import LabCompare, LabRun, summarize
from .session import Request, Session, open_session


def compare(
    request: Request, configs: str, repeat: int, gates: Sequence[str], say: Callable[[str], None]
) -> tuple[LabCompare, list[Verdict]]:
    """Run every configuration `repeat` times, in turns, so that what drifts meets all of them alike.

    configs: comma-separated names, or nothing for the usual ones. Raises UsageError before the boot for
    configurations and gates that cannot be.
    """
    names = parse_configs(configs, request.plan, request.online)
    for gate in gates:
        if unknown := sorted(gate_names(gate, cached=request.cache) - set(names)):
            raise UsageError(f"gate {gate!r}: {unknown[0]!r} is not run", f"it can name {', '.join(names)}")
    runs: dict[str, list[LabRun]] = {name: [] for name in names}
    with open_session(request, say) as session, tempfile.TemporaryFile() as errors:
        for turn in range(repeat):
            for name in names:
                say(f"{name}, run {turn + 1} of {repeat}")
                runs[name].append(_run(session, name, errors))
        machine, boot = session.guest.shape.machine.name, session.guest.boot_seconds
    result = LabCompare(
        machine=machine,
        argv=list(request.argv),
        boot_seconds=boot,
        configs={name: summarize(done) for name, done in runs.items()},
    )
    verdicts = [check_gate(gate, result.configs) for gate in gates]
    result.gates = [
        {"gate": verdict.gate, "ok": verdict.ok, "left": verdict.left, "right": verdict.right}
        for verdict in verdicts
    ]
    return result, verdicts


def _run(session: Session, name: str, errors: BinaryIO) -> LabRun:
    try:
        run = _run_once(session, name, errors)
    except QemuFaultError:  # every program here runs several times anyway
        session.reboot()
        run = _run_once(session, name, errors)
    if run.failed:
        size = os.fstat(errors.fileno()).st_size
        errors.seek(max(0, size - 4096))
        lines = errors.read().decode(errors="replace").strip().splitlines()
        run.said = lines[-1][:300] if lines else ""
    return run


def _run_once(session: Session, name: str, errors: BinaryIO) -> LabRun:
    errors.seek(0)
    errors.truncate()
    return session.run(name, stderr=errors.fileno())


def raise_for(result: LabCompare, verdicts: Sequence[Verdict]) -> None:
    """Raise NotSoError for the first run that failed, else for the first gate that does not hold."""
    for name, config in result.configs.items():
        if config.failed:
            raise NotSoError(f"{name}: {config.problem()}", "see its own messages, --timeout, --exit-code")
    for verdict in verdicts:
        if not verdict.ok:
            raise NotSoError(f"gate {verdict}", "see the table")
