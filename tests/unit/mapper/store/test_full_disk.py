"""A plan that cannot be stored leaves no folders behind."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from numaplan.common import UsageError
from numaplan.mapper.store import places
from numaplan.mapper.store.places import LocalPlace

PARTS = ("build", "machine", "r1-tany-0123456789ab.json")


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_folders_made_for_it_go_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "write_file", full)
    with pytest.raises(UsageError, match="No space left"):
        LocalPlace(str(tmp_path / "store")).write(PARTS, b"{}")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_while_folders_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def some(path: str, mode: int) -> None:
        mkdir(path, mode) if "machine" not in path else full()

    monkeypatch.setattr("numaplan.mapper.store.folders.os.mkdir", some)
    with pytest.raises(UsageError, match="No space left"):
        LocalPlace(str(tmp_path)).write(PARTS, b"{}")
    assert list(tmp_path.iterdir()) == []


def test_folders_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = LocalPlace(str(tmp_path))
    place.write(("build", "another", PARTS[2]), b"{}")
    monkeypatch.setattr(places, "write_file", full)
    with pytest.raises(UsageError, match="No space left"):
        place.write(PARTS, b"{}")
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["another"]
