"""Stores where others could write: only what somebody signed whom the user named is taken."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from numaplan.common import MachineLacksError, UsageError
from numaplan.mapper.store import remote
from numaplan.mapper.store.listing import older_than, rows_of
from numaplan.mapper.store.opening import open_store
from numaplan.mapper.store.store import PlanStore
from tests.support.commands import needs, one_line_error, run, succeed
from tests.support.stores import MACHINE, found, key_of, put, small_plan

fsspec = pytest.importorskip("fsspec")


class Site:
    """A store at an address, the keys of two people, and the file of those who may sign: the first."""

    def __init__(self, folder: Path, address: str) -> None:
        self.address = address
        self.keys = [self._key(folder / name) for name in ("friend", "stranger")]
        self.signers = folder / "allowed"
        self.allow(0)

    @staticmethod
    def _key(path: Path) -> Path:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
        subprocess.run(command, check=True)
        return path

    def allow(self, who: int) -> None:
        """Let one of the two sign."""
        public = self.keys[who].with_suffix(".pub").read_text()
        self.signers.write_text(f'who@site namespaces="numaplan-plan" {public}')

    def store(self, who: int = -1) -> PlanStore:
        """The store as one of the two opens it, or one who only reads."""
        return open_store(self.address, str(self.signers), str(self.keys[who]) if who >= 0 else "")


@pytest.fixture(params=["memory://", "file://"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    needs("ssh-keygen")
    yield Site(tmp_path, f"{request.param}{tmp_path}/plans")
    fsspec.filesystem("memory").store.clear()


def test_a_signed_plan_is_found(site: Site) -> None:
    put(site.store(0), key_of())
    result = found(site.store(), key_of())
    assert result.stored and result.exact and result.stored.plan == small_plan()
    assert found(site.store(), key_of("app fast")).stored  # another class of the build
    site.store(0).drop(result.stored.parts)
    assert not found(site.store(), key_of()).stored


def refused(site: Site, why: str) -> None:
    result = found(site.store(), key_of())
    assert not result.stored and len(result.skipped) == 1 and why in result.skipped[0]


def test_nothing_else_is(site: Site) -> None:
    put(site.store(1), key_of())
    refused(site, "not signed by anyone")
    site.allow(1)
    assert found(site.store(), key_of()).stored
    site.signers.chmod(0o666)
    refused(site, "others may write")
    site.signers.unlink()
    refused(site, "no file of those who may sign")


def test_a_signature_is_for_one_plan_in_one_place(site: Site) -> None:
    store = site.store(0)
    put(store, key_of())
    put(store, key_of("app fast"), small_plan(3))
    files, root = fsspec.core.url_to_fs(site.address)
    one, other = (f"{root}/{'/'.join(store.parts(key_of(s), MACHINE))}.json" for s in ("app #", "app fast"))
    whole = files.cat_file(one)
    files.pipe_file(one, whole.replace(b'"best"', b'"rest"'))
    assert "signature is wrong" in "".join(found(site.store(), key_of()).skipped)
    for ending in ("", ".sig"):  # a good plan of another class
        files.pipe_file(one + ending, files.cat_file(other + ending))
    assert "signature is wrong" in "".join(found(site.store(), key_of()).skipped)
    files.rm_file(other)
    files.pipe_file(f"{one}.sig", b"no signature")
    refused(site, "not signed by anyone")
    files.rm_file(f"{one}.sig")
    refused(site, "it is not signed")


def test_without_a_key_nothing_is_stored(site: Site) -> None:
    for check in (site.store().place.check_writable, lambda: put(site.store(), key_of())):
        with pytest.raises(UsageError, match="must be signed"):
            check()
    no_key = open_store(site.address, str(site.signers), str(site.signers))
    with pytest.raises(UsageError, match="--sign"):
        put(no_key, key_of())


def test_one_that_does_not_answer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    store, never = site.store(), threading.Event()
    monkeypatch.setattr(remote, "PATIENCE_S", 0.01)
    monkeypatch.setattr(type(store.place), "_content", lambda *_: never.wait())
    with pytest.raises(MachineLacksError, match="no answer"):
        found(store, key_of())
    never.set()


def test_an_address_of_nothing() -> None:
    with pytest.raises(MachineLacksError, match="no-such-kind") as caught:
        open_store("no-such-kind://x")
    assert "install" in caught.value.hint


def test_a_reader_waits_for_one_who_is_putting_a_plan(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    store, key = site.store(0), key_of()
    put(store, key)
    files, root = fsspec.core.url_to_fs(site.address)
    file = f"{root}/{'/'.join(store.parts(key, MACHINE))}.json"
    old = files.cat_file(file)
    put(store, key, small_plan(3))
    new = files.cat_file(file)
    files.pipe_file(file, old)  # the new signature is there, the new plan not yet
    refused(site, "signature is wrong")
    monkeypatch.setattr(remote.time, "sleep", lambda _: files.pipe_file(file, new))
    result = found(site.store(), key)
    assert result.stored and result.stored.plan == small_plan(3)


def test_nothing_is_signed_in_a_folder(tmp_path: Path) -> None:
    small_plan(build="").save(tmp_path / "plan.json")
    words = ("--store", tmp_path / "plans", "--sign", "key", tmp_path / "plan.json", "--", "true")
    assert "--sign with" in one_line_error(run("nmap", "store", "put", *words), "nmap", 2)
    assert not (tmp_path / "plans").exists()


def test_commands_at_an_address(tmp_path: Path) -> None:
    needs("ssh-keygen")
    site = Site(tmp_path, f"file://{tmp_path}/plans")
    small_plan(build="").save(tmp_path / "plan.json")
    put_it = ["nmap", "store", "put", "--store", site.address, tmp_path / "plan.json", "--", "true"]
    assert "must be signed" in one_line_error(run(*put_it), "nmap", 2)
    succeed(*put_it[:5], "--sign", site.keys[0], *put_it[5:])
    words = ["--store", site.address, "--signers", site.signers]
    assert '"unused"' in succeed("nmap", "store", "list", *words, "--json").decode()
    assert "refused" in succeed("nmap", "store", "list", *words[:2], "--signers", "/no/such").decode()
    succeed("nmap", "store", "show", *words, "r1-tany-")
    bare = run("nlaunch", "--auto", *words, "true")  # for another machine
    assert bare.returncode == 0 and b"runs without" in bare.stderr
    assert b"dropped" in succeed("nmap", "store", "drop", *words, "--older-than", "0")


def test_a_key_that_may_sign_other_things_under_another_name(site: Site) -> None:
    put(site.store(0), key_of())
    public = site.keys[0].with_suffix(".pub").read_text()
    for other in ('git@site namespaces="git"', 'old@site valid-before="20200101"', "one@site,two@site"):
        site.signers.write_text(f'{other} {public}who@site namespaces="numaplan-plan" {public}')
        assert found(site.store(), key_of()).stored, other
    site.signers.write_text(f'git@site namespaces="git" {public}')
    refused(site, "not signed by anyone")
    site.signers.write_text(f'who@site namespaces="numaplan-*" {public}')
    assert found(site.store(), key_of()).stored


def test_age_drops_no_plan_of_which_it_is_not_known(site: Site) -> None:
    put(site.store(0), key_of())
    site.signers.unlink()
    (row,) = rows_of(site.store())
    assert row.state == "refused" and not older_than([row], 0)
    site.allow(0)
    assert rows_of(site.store())[0].state == "unused"
