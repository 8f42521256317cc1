"""Where the debug information of a program or library is."""

import os
import shutil
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

from numaplan.common import MachineLacksError, UsageError

from .budget import TooMuchError
from .sections import Sections

SEPARATE = Path("/usr/lib/debug")
INFO = ".debug_info"
_TOOL = "debuginfod-find"
_PATIENCE = 120  # seconds for a server
# A server that is silent for ten seconds is not waited for, once; what the user says goes before.
_IMPATIENT = {"DEBUGINFOD_TIMEOUT": "10", "DEBUGINFOD_RETRY_LIMIT": "0"}


def check_servers() -> None:
    """Raise MachineLacksError or UsageError where no server can be asked."""
    if not shutil.which(_TOOL):
        raise MachineLacksError(f"{_TOOL} is not here, and --debuginfod asks by it", "apt install debuginfod")
    if not os.environ.get("DEBUGINFOD_URLS", "").strip():
        raise UsageError(
            "DEBUGINFOD_URLS names no server that --debuginfod could ask", "set it to your distribution's"
        )


def with_debug_info(own: Sections, *, ask_server: bool = False) -> Sections | None:
    """The file itself or the separate one that belongs to it; None where there is none.

    ask_server: also by `debuginfod-find`, which asks the servers that the user's environment names.
    """
    if INFO in own:
        return own
    for path in _separate(own):
        with suppress(OSError, ValueError, struct.error, TooMuchError):
            found = Sections(path)
            if INFO in found and found.build_id == own.build_id:
                return found
    return _from_server(own.build_id) if ask_server and own.build_id else None


def _separate(own: Sections) -> list[Path]:
    """Where a separate file may be."""
    places = []
    if len(own.build_id) > 2:
        places.append(SEPARATE / ".build-id" / own.build_id[:2] / f"{own.build_id[2:]}.debug")
    if own.debug_link:
        folder = own.path.absolute().parent
        places += [
            folder / own.debug_link,
            folder / ".debug" / own.debug_link,
            SEPARATE / str(folder).lstrip("/") / own.debug_link,
        ]
    return [path for path in places if path.is_file()]


def _from_server(build_id: str) -> Sections | None:
    with suppress(OSError, ValueError, struct.error, TooMuchError, subprocess.SubprocessError):
        ran = subprocess.run(
            [_TOOL, "debuginfo", build_id],
            env=_IMPATIENT | os.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=True,
        )
        found = Sections(Path(ran.stdout.strip()))
        if INFO in found and found.build_id == build_id:
            return found
    return None
