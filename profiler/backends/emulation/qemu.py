"""The QEMU that emulates: one that takes our plugin, of the system or fetched by `nprof setup`."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

from numaplan.common import MachineLacksError, cache_folder, native_part

from .guest import architecture_of

PLUGIN = native_part("profiler", "emulate.so")
LOADED = "numaplan: loaded"  # what the plugin says when it is only to be tried
# In the cache folder: bin/qemu-ARCH, and for those that came without what they are linked to lib/ and LOADER.
CACHE = "qemu"
LOADER = "ld.so"
_PATIENCE_S = 60
_ADDR_NO_RANDOMIZE = 0x0040000
_ASK = 0xFFFFFFFF
_libc = ctypes.CDLL(None)
_libc.personality.argtypes = [ctypes.c_ulong]


def check_plugin() -> None:
    """Raise MachineLacksError when our plugin is not there."""
    if not PLUGIN.exists():
        raise MachineLacksError("the emulation plugin is not built", "reinstall numaplan")


def host_architecture() -> str:
    """QEMU's name of the architecture this Python runs on."""
    return architecture_of(sys.executable) or "x86_64"


def find_qemu(architecture: str) -> list[str]:
    """The words that start a qemu-ARCH that takes our plugin; raises MachineLacksError.

    Whether it does is found by having it load the plugin: static builds (qemu-user since Debian 13) have no
    plugins at all.
    """
    name = f"qemu-{architecture}"
    hint = "nprof setup" if architecture == host_architecture() else "nprof setup --renew"
    found = shutil.which(name)
    problem = f"{name} is not installed"
    for words in ([found] if found else [], fetched(architecture)):
        why_not = refusal(words) if words else problem
        if not why_not:
            return words
        problem = f"{words[-1]}: {why_not}" if words else problem
    raise MachineLacksError(problem, hint)


def keep_addresses() -> None:
    """Have no addresses drawn at random in this process and what it becomes, where that is allowed.

    QEMU 9 and later ask the host's kernel where to map the program's memory; up to 8 they choose themselves.
    """
    _libc.personality(_ADDR_NO_RANDOMIZE | max(_libc.personality(_ASK), 0))


def fetched(architecture: str, folder: Path | None = None) -> list[str]:
    """The words that start the QEMU in a folder like that of `nprof setup` (the default); none: not there."""
    folder = folder or cache_folder(CACHE)
    program = folder / "bin" / f"qemu-{architecture}"
    if not program.is_file():
        return []
    loader = folder / LOADER
    # Not by LD_LIBRARY_PATH, which the program would inherit.
    libraries = [str(loader), "--library-path", str(folder / "lib")] if loader.exists() else []
    return [*libraries, str(program)]


def refusal(words: list[str]) -> str:
    """Why a QEMU does not take our plugin; "" when it does."""
    plugin = f"{str(PLUGIN).replace(',', ',,')},try=yes"
    command = [*words, "-plugin", plugin, sys.executable]
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
            process_group=0,  # what ends us by our group must not look like its answer
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run: {error}"
    if answer.stdout.decode(errors="replace").strip() == LOADED:
        return ""
    said = (answer.stderr or answer.stdout).decode(errors="replace").strip().splitlines()
    if any("plugin" in line and ("unknown" in line or "unrecognized" in line) for line in said):
        return "built without plugins"
    return f"does not take our plugin ({said[-1] if said else 'no reason given'})"
