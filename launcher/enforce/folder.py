"""The folder of one launch: its plan table, the list of its processes and what they log.

A process of ours (native/trace/folder.c) makes it and takes it away, also when we are killed.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from numaplan.common import UsageError, uninterrupted

from .tracer import start_tracer

_NAME_BYTES = 4096


@contextmanager
def launch_folder(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A folder with these files, there for as long as the context or, if we are killed, as programs use it.

    Raises UsageError when there is no place for it, MachineLacksError when the native part was not built or
    no process can be started.
    """
    keeper: subprocess.Popen[bytes] | None = None
    folder: Path | None = None
    try:
        with uninterrupted():  # until what it has made is known, as it may be killed
            keeper = start_tracer("keep", *_candidates())
            folder = _made_by(keeper)
        try:
            for file, data in files.items():
                (folder / file).write_bytes(data)
        except OSError as error:
            raise _not_writable(error.strerror or str(error)) from error
        yield folder
    finally:
        if keeper is not None:
            _end(keeper, folder)


def _made_by(keeper: "subprocess.Popen[bytes]") -> Path:
    assert keeper.stdout is not None
    name = keeper.stdout.read(_NAME_BYTES).rstrip(b"\0")
    if not name:
        raise _not_writable(os.strerror(keeper.wait()))
    return Path(os.fsdecode(name))


def _end(keeper: "subprocess.Popen[bytes]", folder: Path | None) -> None:
    assert keeper.stdin is not None and keeper.stdout is not None
    with suppress(OSError):
        keeper.stdin.write(b"d")
    keeper.stdin.close()
    keeper.stdout.close()
    if keeper.wait() < 0 and folder:  # it was killed
        shutil.rmtree(folder, ignore_errors=True)


def _not_writable(reason: str) -> UsageError:
    return UsageError(f"no temporary folder can be written: {reason}", "set TMPDIR to a folder with room")


def _candidates() -> list[str]:
    """Where temporary files go, the best first; as Python's tempfile has it, which takes long to load."""
    configured = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    return [*filter(None, configured), "/tmp", "/var/tmp", os.curdir]
