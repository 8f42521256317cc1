"""Where the static data that a plan names is: in the program, or in a library that it is linked with."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from numaplan.profiler import build_id_of, elf_facts, executable_of, static_objects


class StaticData:
    """Finds static objects by module and symbol, in the program and in the libraries it is linked with."""

    def __init__(self, program: str, environment: Mapping[str, str]) -> None:
        self._executable = executable_of(program)
        self._environment = dict(environment)
        self._libraries: dict[str, str] | None = None

    def locate(self, module: str, symbol: str) -> tuple[int, str] | None:
        """(address in the file, build id in hex) or None."""
        path = self._path(module)
        for item in static_objects(path) if path else ():
            if item.name == symbol:
                return item.address, build_id_of(path)
        return None

    def _path(self, module: str) -> str:
        real = os.path.realpath(self._executable)
        if module == Path(real).name:
            return real
        if self._libraries is None:
            self._libraries = _linked(real, self._environment)
        return self._libraries.get(module) or _later(module, Path(real).parent, self._environment)


def _linked(executable: str, environment: dict[str, str]) -> dict[str, str]:
    """Basename -> path of the libraries that the dynamic linker would load; runs nothing of the program."""
    facts = elf_facts(executable)
    linker = facts.interpreter if facts else ""
    if not linker:
        return {}
    try:
        listing = subprocess.run(
            [linker, "--list", executable], env=environment, capture_output=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    paths = re.findall(rb"(?:=>\s*)?(/\S+)\s+\(0x", listing)
    return {Path(os.fsdecode(path)).name: os.fsdecode(path) for path in paths}


def _later(module: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Where a library that is loaded later (dlopen) probably is; its build id tells if it is another."""
    asked = [Path(part) for part in environment.get("LD_LIBRARY_PATH", "").split(":") if part]
    system = [
        path for root in ("/usr/local/lib", "/usr/lib", "/lib") for path in (Path(root), *_multiarch(root))
    ]
    for place in (*asked, folder, *_beside(folder), Path(), *system):
        if (place / module).is_file():
            return os.path.realpath(place / module)
    return ""


def _beside(folder: Path) -> list[Path]:
    """Where programs have libraries of their own, Java's among them."""
    return [folder / "lib", folder.parent / "lib", folder.parent / "lib" / "server"]


def _multiarch(root: str) -> list[Path]:
    return sorted(Path(root).glob(f"{os.uname().machine}-linux-*"))
