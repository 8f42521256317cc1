"""Which stored plan a run gets, and which it never gets."""

import errno
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from numaplan.machine import Machine
from numaplan.mapper.store.folders import RefusedError
from numaplan.mapper.store.notes import STALE_AFTER, Use
from numaplan.mapper.store.places import LocalPlace
from numaplan.mapper.store.store import PlanStore
from tests.support.stores import BUILD, MACHINE, found, key_of, put, renamed, small_plan, store_in

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
NOBODY = 65534


@pytest.fixture
def store(tmp_path: Path) -> PlanStore:
    return store_in(tmp_path / "plans")


def test_the_own_class_comes_first(store: PlanStore) -> None:
    put(store, key_of("app fast"), renamed(small_plan(), "other"))
    put(store, key_of("app #"), renamed(small_plan(), "own"))
    result = found(store, key_of("app #"))
    assert result.stored and result.stored.plan.method == "own" and result.exact


def test_then_another_class_of_the_same_build(store: PlanStore) -> None:
    put(store, key_of("app fast"))
    result = found(store, key_of("app #"))
    assert result.stored and not result.exact
    assert not found(store, key_of("app #", build=BUILD + "+0123456789abcdef")).stored


def test_the_nearest_of_them(store: PlanStore) -> None:
    put(store, key_of("app fast"), renamed(small_plan(), "far"))
    put(store, key_of("app #", threads=2), renamed(small_plan(), "near"))
    result = found(store, key_of("app #"))
    assert result.stored and result.stored.plan.method == "near"


def test_never_one_for_another_team(store: PlanStore) -> None:
    put(store, key_of("app #", threads=16), small_plan(16))
    assert not found(store, key_of("app #", threads=8)).stored
    put(store, key_of("app #"), small_plan(16))
    assert not found(store, key_of("app #", threads=8)).stored
    put(store, key_of("app #"), small_plan(9))  # 8 and a helper
    assert found(store, key_of("app #", threads=8)).exact
    assert not found(store, key_of("app #", ranks=4)).stored
    put(store, key_of("app #", ranks=4, name="job"), small_plan())  # of one process
    assert "for one process" in found(store, key_of("app #", ranks=4, name="job")).skipped[0]


def test_never_one_for_more_ranks_on_a_host(store: PlanStore) -> None:
    """On each of several hosts ranks would take their cpus as if all were there."""
    plan = small_plan(4)
    threads = [replace(thread, process=f"r{n}", path="0") for n, thread in enumerate(plan.threads)]
    key = key_of("app #", ranks=4)
    put(store, key, replace(plan, threads=tuple(threads)))
    for here in (0, 4):  # 0: the launcher does not tell
        assert found(store, replace(key, ranks_here=here)).stored
    result = found(store, replace(key, ranks_here=2))
    assert not result.stored and "is for 4 ranks on one host; 2 run here" in result.skipped[0]
    assert "1 runs here" in found(store, replace(key, ranks_here=1)).skipped[0]


def test_never_one_for_another_build_or_machine(store: PlanStore) -> None:
    put(store, key_of(), small_plan(build="f" * 16))
    result = found(store, key_of())
    assert not result.stored and "another build" in result.skipped[0]
    other = Machine.load("4x2")
    put(store, key_of(), small_plan(machine=other), other)
    assert "another machine" in "".join(found(store, key_of()).skipped)


def test_a_program_without_plans(store: PlanStore) -> None:
    assert not found(store, key_of()).skipped
    put(store, key_of("x", build="f" * 16))
    assert not found(store, key_of()).skipped


def refused(store: PlanStore, why: str) -> None:
    result = found(store, key_of())
    assert not result.stored
    assert len(result.skipped) == 1 and why in result.skipped[0]


@ROOT_ONLY
def test_never_one_of_another_owner(store: PlanStore) -> None:
    file = put(store, key_of())
    os.chown(file, NOBODY, 0)
    refused(store, f"belongs to another user (uid {NOBODY})")
    os.chown(file, 0, 0)
    assert found(store, key_of()).stored
    for folder in (file.parent, file.parent.parent, file.parent.parent.parent):
        os.chown(folder, NOBODY, 0)
        refused(store, "another user")
        os.chown(folder, 0, 0)


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_never_one_that_others_may_write(store: PlanStore, mode: int) -> None:
    file = put(store, key_of())
    file.chmod(mode)
    refused(store, "others may write")
    file.chmod(0o644)
    for folder in (file.parent, file.parent.parent, file.parent.parent.parent):
        folder.chmod(0o777)
        refused(store, "others may write")
        folder.chmod(0o755)
    assert found(store, key_of()).stored


def test_what_we_write_is_ours_alone_whatever_the_umask(store: PlanStore) -> None:
    before = os.umask(0)
    try:
        put(store, key_of())
    finally:
        os.umask(before)
    assert found(store, key_of()).stored


def test_links_are_not_followed(store: PlanStore, tmp_path: Path) -> None:
    file = put(store, key_of())
    elsewhere = tmp_path / "elsewhere.json"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    refused(store, "symbolic link")
    folder = file.parent
    file.unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path)
    refused(store, "symbolic link")


def test_what_is_no_plan(store: PlanStore) -> None:
    file = put(store, key_of())
    for content in (b"", b"{}", b"\x00" * 100, b"[" * 100_000, b'{"schema":"numaplan/plan/1"}'):
        file.write_bytes(content)
        refused(store, file.name)
    file.unlink()
    os.mkfifo(file)
    refused(store, "is not a file")
    file.unlink()
    file.mkdir()
    refused(store, "is not a file")


def test_a_root_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "plans").write_text("")
    refused(store_in(tmp_path / "plans"), "is not a folder")
    assert "too long" in found(store_in(tmp_path / ("x" * 10_000_000)), key_of()).skipped[0]


def test_what_the_system_cannot_read(monkeypatch: pytest.MonkeyPatch) -> None:
    process = LocalPlace("/proc/self")
    with pytest.raises(RefusedError, match=r"^/proc/self/mem: Input/output error"):
        process.read(("mem",), 100)  # its first page

    def fails(_folder: int) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "scandir", fails)
    with pytest.raises(RefusedError, match=r"^/proc/self: Stale file handle"):
        process.names((), 100)


def use(*, fits: bool) -> Use:
    return Use((2, 2), (0, 0), fits, "2/2 threads as planned")


def test_a_plan_that_no_longer_fits_is_skipped_until_it_is_put_again(store: PlanStore) -> None:
    put(store, key_of())
    for fits in (False, True, *[False] * (STALE_AFTER - 1)):
        stored = found(store, key_of()).stored
        assert stored
        store.note_use(stored, use(fits=fits))
    stored = found(store, key_of()).stored
    assert stored and stored.note.applied == STALE_AFTER + 1 and stored.note.unfit_since > 0
    store.note_use(stored, use(fits=False))
    refused(store, "no longer appears, since")
    put(store, key_of())
    stored = found(store, key_of()).stored
    assert stored and not stored.note.applied


def test_notes_need_not_be_writable_or_readable(store: PlanStore) -> None:
    file = put(store, key_of())
    note = file.with_suffix(".used")
    for content in (b"", b"[]", b"\xff", b'{"plan": 3}'):
        note.write_bytes(content)
        stored = found(store, key_of()).stored
        assert stored and not stored.note.applied
    note.unlink()
    note.mkdir()
    store.note_use(stored, use(fits=True))
    assert found(store, key_of()).stored


def test_of_thousands_a_few_are_looked_at(store: PlanStore, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(store, key_of())
    for number in range(10_000):
        os.link(file, file.with_name(f"r1-tany-{number:012x}.json"))
    read: list[object] = []
    monkeypatch.setattr(PlanStore, "load", lambda _self, parts: read.append(parts))
    monkeypatch.setattr(PlanStore, "_usable", lambda _self, parts, *_: read.append(parts))
    found(store, key_of())
    assert read[0] == store.parts(key_of(), MACHINE)
    assert len(read) < 20
