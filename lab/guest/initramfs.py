"""The guest's initial file system: the agent as /init, the C library it needs, the kernel's modules."""

import stat
from collections.abc import Iterable
from pathlib import Path

from numaplan.common import MachineLacksError

_MAGIC = b"070701"


def cpio(entries: Iterable[tuple[str, int, bytes, tuple[int, int]]]) -> bytes:
    """A `newc` archive of (name, mode, content, device numbers), in the given order."""
    parts = []
    for number, (name, mode, data, device) in enumerate([*entries, ("TRAILER!!!", 0, b"", (0, 0))], start=1):
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name.encode()) + 1, 0)
        head = _MAGIC + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        parts += [head, bytes(-len(head) % 4), data, bytes(-len(data) % 4)]
    return b"".join(parts)


def initial_files(agent: Path, modules: Iterable[Path]) -> bytes:
    """The archive the kernel unpacks and starts /init of."""
    contents = {"init": agent, **{f"modules/{path.name}": path for path in modules}}
    contents |= {str(path).lstrip("/"): path for path in libraries(agent)}
    folders = {str(parent) for name in contents for parent in Path(name).parents if str(parent) != "."}
    entries = [("dev", stat.S_IFDIR | 0o755, b"", (0, 0)), ("dev/console", stat.S_IFCHR | 0o600, b"", (5, 1))]
    entries += [(name, stat.S_IFDIR | 0o755, b"", (0, 0)) for name in sorted(folders)]
    entries += [(name, stat.S_IFREG | 0o755, path.read_bytes(), (0, 0)) for name, path in contents.items()]
    return cpio(entries)


def libraries(program: Path) -> list[Path]:
    """The dynamic loader a program names and the libraries it needs, found where this process has them."""
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile

    with program.open("rb") as file:
        elf = ELFFile(file)
        loaders = [str(getattr(s, "get_interp_name")()) for s in elf.iter_segments("PT_INTERP")]  # noqa: B009
        needed = [
            str(getattr(tag, "needed"))  # noqa: B009
            for section in elf.iter_sections()
            if isinstance(section, DynamicSection)
            for tag in section.iter_tags("DT_NEEDED")
        ]
    return [Path(path) for path in loaders] + [_mapped_library(name) for name in needed]


def _mapped_library(name: str) -> Path:
    """A library by the path it has in this process: Python is linked to the same C library as the agent."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name == name:
            return path
    raise MachineLacksError(
        f"{name} is not loaded in this Python", "use a Python linked to the system's C library"
    )
