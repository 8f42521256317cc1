"""What a program asks of the loader: libraries, and names such as MPI's functions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# Whatever makes an intercommunicator or processes of MPI, in C and in Fortran.
_BETWEEN_GROUPS = re.compile(
    rb"\0P?MPI_(COMM_SPAWN|INTERCOMM_CREATE|COMM_ACCEPT|COMM_CONNECT|COMM_JOIN)[A-Z0-9_]*\0", re.IGNORECASE
)
_ORIGIN = re.compile(r"\$ORIGIN|\$\{ORIGIN\}")
_MOST_FILES = 200


class Linking(NamedTuple):
    """names: of all dynamic symbols, which stripped files keep, each between NULs; libraries: as they are
    called; folders: where the file has the loader look for them."""

    names: bytes = b""
    libraries: Sequence[str] = ()
    folders: Sequence[str] = ()


def linking_of(path: str) -> Linking:
    """Of an ELF file; nothing of anything else."""
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile

    try:
        with Path(path).open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return Linking()
            elf = ELFFile(file)
            section, names = elf.get_section_by_name(".dynamic"), elf.get_section_by_name(".dynstr")
            if not isinstance(section, DynamicSection):
                return Linking()
            tags = list(section.iter_tags())
            paths = [
                str(getattr(tag, name)) for tag in tags for name in ("rpath", "runpath") if hasattr(tag, name)
            ]
            origin = str(Path(path).resolve().parent)
            return Linking(
                names.data() if names else b"",
                [str(tag.needed) for tag in tags if hasattr(tag, "needed")],
                [re.sub(r"\$ORIGIN|\$\{ORIGIN\}", origin, one) for text in paths for one in text.split(":")],
            )
    except Exception:  # elftools raises whatever a damaged file makes of it
        return Linking()


def _texts(tags: Iterable[object], kind: str) -> list[str]:
    """What the dynamic tags of a kind say."""
    return [str(getattr(tag, kind)) for tag in tags if hasattr(tag, kind)]


def uses_intercommunicators(programs: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether programs, or libraries that only they or the user's LD_LIBRARY_PATH lead to, talk to processes
    that are not of their group of MPI; of what they load as they run, nobody knows."""
    return any(_BETWEEN_GROUPS.search(names) for names in _names(programs, environment))


def _names(programs: Sequence[str], environment: Mapping[str, str]) -> Iterator[bytes]:
    users = environment.get("LD_LIBRARY_PATH", "").split(":")
    waiting, seen = list(programs), set[str]()
    while waiting and len(seen) < _MOST_FILES:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        found = linking_of(path)
        yield found.names
        for library in found.libraries:
            files = [Path(folder) / library for folder in (*found.folders, *users) if folder]
            # MPI's own libraries have all of its functions.
            if not library.startswith("libmpi") and (file := next(filter(Path.is_file, files), None)):
                waiting.append(str(file))
