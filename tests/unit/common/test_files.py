"""Outputs: links stay links, what is no file is written as it is, a file's mode is kept."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from numaplan.common import (
    UsageError,
    check_named_once,
    check_output,
    open_now,
    read_document,
    write_document,
)

NEW = b"new\n"


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link, chain = tmp_path / "far" / "target", tmp_path / "link", tmp_path / "chain"
    target.write_bytes(b"old")
    link.symlink_to("far/target")
    chain.symlink_to(link)
    for path in (link, chain):
        write_document(path, NEW)
        assert link.is_symlink() and chain.is_symlink() and not target.is_symlink()
        assert target.read_bytes() == NEW
        target.write_bytes(b"old")
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["target"]


def test_a_link_that_leads_to_nothing_yet(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target")
    write_document(link, NEW)
    assert link.is_symlink() and (tmp_path / "target").read_bytes() == NEW


@pytest.mark.parametrize("leads_to, what", [("no/such/folder", "no folder"), ("link", "symbolic links")])
def test_a_link_to_where_nothing_can_be(tmp_path: Path, leads_to: str, what: str) -> None:
    link = tmp_path / "link"
    link.symlink_to(leads_to)
    for attempt in (lambda: check_output(link), lambda: write_document(link, NEW)):
        with pytest.raises(UsageError, match=what):
            attempt()
    assert link.is_symlink() and list(tmp_path.iterdir()) == [link]


@pytest.mark.parametrize("to_file", [False, True], ids=["a pipe", "a file"])
def test_what_a_process_has_open_is_written_as_it_is(tmp_path: Path, to_file: bool) -> None:
    """As /dev/stdout, which leads there; a link of our own, for the machine's must not be risked."""
    link, opened = tmp_path / "out", tmp_path / "opened"
    link.symlink_to("/proc/self/fd/1")
    code = f"from numaplan.common import write_document as write; write({str(link)!r}, {NEW!r})"
    with opened.open("wb") as file:
        inode = os.fstat(file.fileno()).st_ino
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=file if to_file else subprocess.PIPE, check=True
        )
    assert (opened.read_bytes() if to_file else done.stdout) == NEW
    assert link.is_symlink() and opened.stat().st_ino == inode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["opened", "out"]


def test_a_link_to_a_device(tmp_path: Path) -> None:
    link = tmp_path / "nowhere"
    link.symlink_to("/dev/null")
    write_document(link, NEW)
    assert link.is_symlink() and stat.S_ISCHR(link.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_document(path, NEW)
    assert path.read_bytes() == NEW and stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_stays_that_ones(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 65534, 65534)
    path.chmod(0o600)
    write_document(path, NEW)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (65534, 65534, 0o600)


def test_an_output_that_is_read(tmp_path: Path) -> None:
    path, link, other = tmp_path / "file", tmp_path / "link", tmp_path / "other"
    path.write_bytes(b"old")
    link.symlink_to(path)
    other.write_bytes(b"old")
    for output in (path, link):
        with pytest.raises(UsageError, match="over what is read"):
            check_output(output, [other, path])
    check_output(path, [other, tmp_path / "absent", "", tmp_path])
    check_output("/dev/null", ["/dev/null"])


def test_a_pipe_without_a_reader_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for write in (lambda: write_document(pipe, NEW), lambda: open_now(pipe)):
        with pytest.raises(UsageError, match="nobody reads this pipe"):
            write()
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_document(pipe, NEW)
        assert os.read(reader, 100) == NEW
        with open_now(pipe) as file:
            assert os.get_blocking(file.fileno())
    finally:
        os.close(reader)


def test_a_pipe_is_read_to_its_end_if_somebody_writes_into_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    signal.alarm(20)  # ends what would wait for ever
    try:
        with pytest.raises(UsageError, match="nobody writes into this pipe"):
            read_document(pipe, "plan")
    finally:
        signal.alarm(0)
    reader, writer = os.pipe()
    try:
        with subprocess.Popen(["sh", "-c", "echo new"], stdout=writer):
            os.close(writer)
            assert read_document(f"/proc/self/fd/{reader}", "plan") == NEW
    finally:
        os.close(reader)


def test_a_database_is_no_pipe_and_no_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for special in (pipe, Path("/dev/null")):
        check_output(special)
        with pytest.raises(UsageError, match="is a pipe or a device"):
            check_output(special, database=True)


def test_a_recording_is_named_once(tmp_path: Path) -> None:
    one, other, copy, link = (tmp_path / name for name in ("one", "other", "copy", "link"))
    one.write_bytes(b"recorded")
    other.write_bytes(b"RECORDED")
    copy.write_bytes(b"recorded")
    link.symlink_to(one)
    check_named_once([one, other, tmp_path / "absent", tmp_path])
    with pytest.raises(UsageError, match="link: given twice"):
        check_named_once([one, other, link])
    with pytest.raises(UsageError, match=f"copy: is a copy of {one}"):
        check_named_once([one, other, copy])
