"""Where the lab's files are: the user's cache folder, and the native parts beside the package."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from numaplan.common import MachineLacksError, cache_folder as user_cache, native_part, temporary_folder

QEMU = "qemu-system-x86_64"
_PREFIX = "numaplan-lab-"


def cache_folder() -> Path:
    """The lab's folder in the user's cache; it need not exist."""
    return user_cache("lab")


def lab_part(name: str) -> Path:
    """A file built into `lab/native` (plugin.so, …); raises MachineLacksError if it is missing."""
    path = native_part("lab", name)
    if not path.is_file():
        raise MachineLacksError(f"{path}: the lab's native part is not built", "install the package again")
    return path


@contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder of this process; first removes those of labs that were killed."""
    base = Path(tempfile.gettempdir())
    for left_over in base.glob(f"{_PREFIX}*"):
        owner = re.match(rf"{_PREFIX}(\d+)-", left_over.name)
        if owner and not Path(f"/proc/{owner[1]}").exists() and left_over.stat().st_uid == os.getuid():
            shutil.rmtree(left_over, ignore_errors=True)
    with temporary_folder(f"{_PREFIX}{os.getpid()}-") as folder:
        yield folder


def open_to_users(folder: Path) -> None:
    """Have users that the program becomes write into a folder of ours, where it starts as root (setpriv, su).

    The folder's name cannot be guessed, nor can that of ours be listed.
    """
    if os.getuid():
        return
    folder.parent.chmod(0o711)
    folder.chmod(0o1733)
    for path in folder.iterdir():
        if not path.is_symlink():
            path.chmod(0o666)
