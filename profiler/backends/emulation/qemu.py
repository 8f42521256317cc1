"""The QEMU that emulates: one that takes our plugin, of the system or fetched by `nprof setup`."""

import ctypes
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from numaplan.common import MachineLacksError, cache_folder, lacks_files, native_part

from .guest import architecture_of

PLUGIN = native_part("profiler", "emulate.so")
LOADED = "numaplan: loaded"  # what the plugin says when it is only to be tried
# In the cache folder: bin/qemu-ARCH, and for those that came without what they are linked to lib/ and LOADER.
CACHE = "qemu"
LOADER = "ld.so"
# All that QEMU can do but the fast string instructions: libc fills and copies by them where a processor has
# them, QEMU carries them out byte by byte, and one memset would outweigh all the rest.
_X86_CPU = "max,erms=off,fsrm=off"
# Earlier ones ignore indices of an AVX2 gather that are in vector register 4: numpy.argsort sorts wrongly.
_GATHERS_RIGHT, _WITHOUT_AVX2 = (9, 1), "avx2=off"
# The first that takes version 7 of the plugins' interface, and no earlier one. Our plugin cannot see it.
_CALLS_WITH_USERDATA, _SAID_SO = (11, 1), {"NUMAPLAN_QEMU_API": "7"}
# Earlier ones keep a note of each page of what the program maps: 24 bytes, also where it is only reserved.
_NOTES_RANGES, _MOST_RESERVED = (8, 0), ("-E", f"NUMAPLAN_MOST_RESERVED={16 << 30}")
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
    for words in map(with_interface, ([found] if found else [], fetched(architecture))):
        why_not = refusal(words) if words else problem
        if not why_not:
            return words
        problem = f"{words[-1]}: {why_not}" if words else problem
    raise MachineLacksError(problem, hint)


def qemu_version(words: Sequence[str]) -> tuple[int, int] | None:
    """Major and minor version of the QEMU that these words start; None: not there, or it does not tell."""
    try:
        done = subprocess.run(
            [*words, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=30, process_group=0
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if lacks_files(error):
            raise
        return None
    found = re.search(rb"version (\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else None


def plugin_interface(version: tuple[int, int] | None) -> dict[str, str]:
    """What in QEMU's environment tells our plugin which interface this version of it takes."""
    return _SAID_SO if version is not None and version >= _CALLS_WITH_USERDATA else {}


def with_interface(words: list[str]) -> list[str]:
    """The words that start a QEMU, and tell our plugin its interface."""
    told = plugin_interface(qemu_version(words)) if words else {}
    return ["/usr/bin/env", *(f"{name}={value}" for name, value in told.items()), *words] if told else words


def x86_cpu(version: tuple[int, int] | None, avx2: str = "auto") -> str:
    """The value of -cpu for x86_64; "auto": without AVX2 where this version of QEMU gets it wrong."""
    right = version is not None and version >= _GATHERS_RIGHT
    return _X86_CPU if avx2 == "on" or (avx2 == "auto" and right) else f"{_X86_CPU},{_WITHOUT_AVX2}"


def reserving(version: tuple[int, int] | None) -> tuple[str, ...]:
    """What tells our preload library to reserve little of what the program does not use, if it must."""
    return () if version is not None and version >= _NOTES_RANGES else _MOST_RESERVED


def lacks_avx2(command: Sequence[str]) -> bool:
    """Whether a command line of QEMU leaves AVX2 out."""
    return any(word.endswith(f",{_WITHOUT_AVX2}") for word in command)


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
        if lacks_files(error):
            raise
        return f"does not run: {error}"
    if answer.stdout.decode(errors="replace").strip() == LOADED:
        return ""
    said = (answer.stderr or answer.stdout).decode(errors="replace").strip().splitlines()
    if any("plugin" in line and ("unknown" in line or "unrecognized" in line) for line in said):
        return "built without plugins"
    return f"does not take our plugin ({said[-1] if said else 'no reason given'})"
