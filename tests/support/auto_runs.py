"""Runs by `nlaunch --auto` with a store of their own."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from numaplan.mapper import Plan
from tests.support.commands import clean_environment, succeed
from tests.support.launching import NLAUNCH
from tests.support.waiting import PATIENCE_S

ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Store:
    """A store, and a folder for temporary files in which nothing may be left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.temporary = folder / "plans", folder / "tmp"
        self.temporary.mkdir()
        self.environment = {
            **clean_environment(),
            **ROOT_MAY,
            "NUMAPLAN_STORE": str(self.folder),
            "TMPDIR": str(self.temporary),
        }

    def launch(
        self, *words: str | Path, mode: str = "", before: Sequence[str] = (), stdin: bytes = b""
    ) -> "subprocess.CompletedProcess[bytes]":
        """`nlaunch --auto` of a program; before: what starts it."""
        command = [*before, str(NLAUNCH), f"--auto{mode}", *map(str, words)]
        return subprocess.run(
            command,
            input=stdin,
            env=self.environment,
            capture_output=True,
            timeout=PATIENCE_S * 2,
            check=False,
        )

    def record(self, *words: str | Path) -> "subprocess.CompletedProcess[bytes]":
        """The same with `--auto=record`, emulated."""
        return self.launch("--backend", "emulate", *words, mode="=record")

    def put(self, plan: Plan, argv: Sequence[str], *options: str) -> Path:
        """Store a plan by `nmap store put`; its file."""
        plan.save(self.folder.parent / "plan.json")
        succeed(
            "nmap",
            "store",
            "put",
            "--store",
            self.folder,
            *options,
            self.folder.parent / "plan.json",
            "--",
            *argv,
        )
        (file,) = self.files()
        return file

    def files(self) -> list[Path]:
        """All that is stored."""
        return sorted(self.folder.rglob("*.json"))

    def nothing_left(self) -> None:
        """No plan, no trace, no temporary files."""
        assert [*self.folder.rglob("*")] == []
        assert [*self.temporary.rglob("*")] == []
