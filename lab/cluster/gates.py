"""Conditions on a job's run, for CI: local accesses at least, bytes between hosts at most."""

import re

from numaplan.common import JUnitCase, NotSoError, UsageError, junit_xml, read_size

from ..runs.gate import Verdict
from .results import ClusterRun

_SHARE = re.compile(r"(\d{1,3}(?:\.\d+)?)(%?)")


def parse_share(option: str, text: str) -> float:
    """A share of 90% or 0.9; raises UsageError."""
    found = _SHARE.fullmatch(text)
    share = float(found[1]) / (100 if found[2] else 1) if found else -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"{option} {text}: not a share", "give for example 90%")
    return share


class Gates:
    """What is asked of a run; empty: nothing. Raises UsageError for what cannot be read."""

    def __init__(self, min_local: str, max_between_hosts: str) -> None:
        self._local = parse_share("--min-local", min_local) if min_local else None
        self._between = read_size("--max-between-hosts", max_between_hosts) if max_between_hosts else None

    def check(self, run: ClusterRun) -> list[Verdict]:
        """What holds, in the order of the options; also noted in the run. Of one that failed nothing does."""
        verdicts = []
        if self._local is not None:
            gate, share = f"local_share >= {self._local:g}", run.local_share
            ok = not run.failed and share >= self._local
            verdicts.append(Verdict(gate, ok, share, self._local, "local_share"))
        if self._between is not None:
            gate, sent = f"between_hosts <= {self._between:.0f}", run.between_hosts
            ok = not run.failed and sent <= self._between
            verdicts.append(Verdict(gate, ok, sent, self._between, "between_hosts"))
        run.gates = [
            {"gate": one.gate, "ok": one.ok, "left": one.left, "right": one.right} for one in verdicts
        ]
        return verdicts


def cluster_junit(run: ClusterRun, verdicts: list[Verdict]) -> bytes:
    """A test suite: a case for the program, which must exit with 0, and one a gate."""
    cases = [JUnitCase("nlab.run", "cluster", problem(run), seconds=run.seconds)]
    cases += [JUnitCase("nlab.gate", one.gate, "" if one.ok else str(one)) for one in verdicts]
    return junit_xml("nlab cluster", cases, in_suites=True)


def problem(run: ClusterRun) -> str:
    """How the program failed; empty where it did not."""
    if run.timed_out:
        return f"the program ran out of time after {run.seconds:.0f} s"
    return f"the program exited with {run.exit_code}" if run.failed else ""


def raise_for(verdicts: list[Verdict]) -> None:
    """Raise NotSoError for the first gate that does not hold."""
    for verdict in verdicts:
        if not verdict.ok:
            raise NotSoError(f"gate {verdict}", "see the table")
