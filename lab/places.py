"""Where the lab's files are: the user's cache folder, and the native parts beside the package."""

import os
from pathlib import Path

from numaplan.common import MachineLacksError, cache_folder as user_cache, native_part

QEMU = "qemu-system-x86_64"
TEMPORARY = "numaplan-lab-"  # what folders of runs begin with


def cache_folder() -> Path:
    """The lab's folder in the user's cache; it need not exist."""
    return user_cache("lab")


def lab_part(name: str) -> Path:
    """A file built into `lab/native` (plugin.so, …); raises MachineLacksError if it is missing."""
    path = native_part("lab", name)
    if not path.is_file():
        raise MachineLacksError(f"{path}: the lab's native part is not built", "install the package again")
    return path


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
