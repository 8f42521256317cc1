"""`nprof setup`: what it fetches by apt, and what it does where that is not possible."""

import os
import shutil
from pathlib import Path

import pytest

from numaplan.common import MachineLacksError, UsageError
from numaplan.profiler.backends.emulation.qemu import host_architecture
from numaplan.profiler.setup import apt, build, qemu
from tests.support.commands import needs

APT = """#!/bin/sh
echo "$@" >>"$0.log"
case "$*" in
*indextargets*) echo "Packages sid http://mirror.test/other"; echo "Packages trixie http://mirror.test/d" ;;
*update) [ ! -e "$0.offline" ] || { echo "E: no network" >&2; exit 100; } ;;
*install*)
    folder=$(echo "$*" | sed 's/.*Dir::Cache=\\([^ ]*\\).*/\\1/')
    [ ! -e "$0.deb" ] || cp "$0.deb" "$folder/archives/qemu-user.deb" ;;
*) exit 1 ;;
esac
"""
RELEASE = {"ID": "debian", "VERSION_CODENAME": "trixie"}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system of Debian 13 without a QEMU, whose apt-get is ours."""
    program = tmp_path / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text(APT)
    program.chmod(0o755)
    tools = ("sh", "cp", "sed", "dpkg-deb", "tar", "rm")
    needs(*tools)
    for tool in tools:
        (program.parent / tool).symlink_to(shutil.which(tool) or "")
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(apt, "_STATUS", tmp_path / "status")
    (tmp_path / "status").write_text("Package: base\n")
    monkeypatch.setattr(apt.platform, "freedesktop_os_release", lambda: RELEASE)
    return program


def asked(program: Path) -> list[str]:
    return Path(f"{program}.log").read_text().splitlines()


def package(folder: Path, target: Path, does: str) -> None:
    """A package whose qemu-ARCH is a script; what starts it is no loader."""
    program = folder / "tree/usr/bin" / f"qemu-{host_architecture()}"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    (folder / "tree/DEBIAN").mkdir()
    facts = "Package: qemu-user\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n"
    (folder / "tree/DEBIAN/control").write_text(facts)
    qemu.output_of(["dpkg-deb", "-b", str(folder / "tree"), str(target)], folder, "no package")


def test_apt_has_lists_of_its_own_and_the_systems_mirror(fake: Path, tmp_path: Path) -> None:
    folder = tmp_path / "apt"
    folder.mkdir()
    fetching = apt.PrivateApt(folder, "deb", "bookworm")
    assert (folder / "sources.list").read_text() == (
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.test/d bookworm main\n"
    )
    assert fetching.packages(["qemu-user/bookworm"]) == []
    update, install = asked(fake)[-2:]
    for words in (update, install):
        assert f"Dir::State={folder} " in words and f"Dir::State::status={folder}/status " in words
        assert "Dir::Etc::sourceparts=- " in words
        assert "AllowUnauthenticated=false" in words and "AllowInsecureRepositories=false" in words
    assert install.endswith("install --download-only --no-install-recommends --allow-downgrades "
                            "--reinstall qemu-user/bookworm")  # fmt: skip


def test_the_package_is_unpacked_into_the_cache(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, Path(f"{fake}.deb"), "echo numaplan: loaded")
    loader = tmp_path / "loader"
    loader.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    loader.chmod(0o755)
    monkeypatch.setattr(qemu, "_loader", lambda _program: loader)
    said: list[str] = []
    words = qemu.set_up(False, False, said.append)
    assert words[-1] == str(tmp_path / "cache/numaplan/qemu/bin" / f"qemu-{host_architecture()}")
    assert "fetching qemu-user of debian bookworm" in said
    before = len(asked(fake))
    assert qemu.set_up(False, False, said.append) == words
    assert len(asked(fake)) == before
    assert sorted(path.name for path in (tmp_path / "cache/numaplan").iterdir()) == [".lock", "qemu"]


def test_one_that_does_not_load_the_plugin_is_not_kept(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, Path(f"{fake}.deb"), "exit 1")
    monkeypatch.setattr(qemu, "_loader", lambda _program: "/bin/sh")
    with pytest.raises(MachineLacksError, match=r"does not take our plugin.*sources of qemu could not"):
        qemu.set_up(False, False, lambda _text: None)
    assert [path.name for path in (tmp_path / "cache/numaplan").iterdir()] == [".lock"]


def test_without_a_network_it_says_once_what_to_do(fake: Path) -> None:
    Path(f"{fake}.offline").touch()
    with pytest.raises(MachineLacksError) as caught:
        qemu.set_up(False, False, lambda _text: None)
    assert caught.value.what == "the list of packages could not be fetched: E: no network"
    assert (
        caught.value.hint.startswith("check the network") and "--enable-plugins on PATH" in caught.value.hint
    )
    assert any("Error-Mode=any" in line for line in asked(fake))  # else apt calls it a warning


@pytest.mark.usefixtures("fake")
def test_building_needs_what_root_can_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MachineLacksError, match="needs cc, meson, ninja") as caught:
        build.build_qemu(tmp_path / "none", tmp_path, "x86_64", lambda _text: None)
    assert caught.value.hint.startswith("as root: apt-get install -y --no-install-recommends gcc")


def test_no_device_tree_is_missed(tmp_path: Path) -> None:
    """QEMU 10.2 names all of them, and Debian's sources have none that is compiled."""
    folder = tmp_path / "pc-bios/dtb"
    folder.mkdir(parents=True)
    (folder / "bamboo.dts").touch()
    build.leave_out_device_trees(tmp_path)
    assert (folder / "bamboo.dtb").is_file()


def test_other_distributions_are_told_what_to_do(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt.platform, "freedesktop_os_release", lambda: {"ID": "fedora"})
    with pytest.raises(MachineLacksError, match="no Debian or Ubuntu") as caught:
        qemu.set_up(False, False, lambda _text: None)
    assert "--enable-plugins" in caught.value.hint
    assert not Path(f"{fake}.log").exists()


def test_a_cache_folder_that_cannot_be_is_told_of(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", f"{fake}/cache")
    with pytest.raises(UsageError, match="Not a directory") as caught:
        qemu.set_up(False, False, lambda _text: None)
    assert "XDG_CACHE_HOME" in caught.value.hint


def test_derivatives_are_known_by_what_they_derive_from(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}
    monkeypatch.setattr(apt.platform, "freedesktop_os_release", lambda: facts)
    assert apt.distribution() == "ubuntu"
