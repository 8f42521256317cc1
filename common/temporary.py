"""Temporary folders that no signal leaves behind."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .interrupts import surely, uninterrupted


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A new folder, in TMPDIR or `parent`, removed at the end however that comes."""
    folder = None
    try:
        with uninterrupted():
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        yield folder
    finally:
        if folder is not None:
            surely(shutil.rmtree, folder, True)
