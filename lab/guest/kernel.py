"""The guest's kernel: taken out of a Debian package, kept in the cache as what a boot needs and nothing else.

A kernel folder holds `vmlinux` (the uncompressed kernel, which QEMU starts directly: the unpacking that a
bzImage does first takes seconds under emulation), `modules/NN-name.ko` in the order in which they are
loaded, and `kernel.json`, written last.
"""

import gzip
import lzma
import struct
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import msgspec

from numaplan.common import BAD_JSON, MachineLacksError, UsageError

from ..places import cache_folder

# What turns the virtio devices of the lab into files and streams, and overlays; dependencies are found.
NEEDED_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "virtio_console", "overlay")
NETWORK_MODULES = ("virtio_net",)  # what guests that are joined by a network need beside them
_MODULES = ("lib/modules", "usr/lib/modules")
_SETUP_HEADER = 0x1F1  # offset of the x86 boot protocol's header in a bzImage
_ELF = b"\x7fELF"
UNPACKED_LIMIT = 512 << 20


class Kernel(NamedTuple):
    """A kernel in the cache: its version, the uncompressed image, its modules in load order.

    network: the modules to load after these for a network between guests; none in a kernel that an older
    version of us fetched.
    """

    version: str
    image: Path
    modules: tuple[Path, ...]
    network: tuple[Path, ...]

    @property
    def overlays(self) -> bool:
        """Whether it has overlay file systems, which kernels fetched by older versions of us lack."""
        return any(path.name.endswith("-overlay.ko") for path in self.modules)


class _Record(msgspec.Struct):
    version: str
    modules: list[str]
    network: list[str] = []


def installed_kernel() -> Kernel:
    """The newest kernel in the cache; raises MachineLacksError when there is none."""
    found: list[Path] = []
    with suppress(OSError):  # 'nlab setup' says what is wrong with the folder
        found = sorted(cache_folder().glob("kernel-*/kernel.json"), key=lambda path: path.stat().st_mtime)
    for record_file in reversed(found):
        try:
            record = msgspec.json.decode(record_file.read_bytes(), type=_Record)
        except (*BAD_JSON, OSError):
            continue
        folder = record_file.parent
        modules = tuple(folder / "modules" / name for name in record.modules)
        network = tuple(folder / "modules" / name for name in record.network)
        if all(path.is_file() for path in (folder / "vmlinux", *modules, *network)):
            return Kernel(record.version, folder / "vmlinux", modules, network)
    raise MachineLacksError("the lab has no kernel yet", "run 'nlab setup'")


def import_kernel(tree: Path, target: Path) -> str:
    """Fill the folder `target` from an unpacked kernel package `tree`; returns the kernel's version.

    Raises UsageError when the tree holds no kernel that can be used.
    """
    images = {path.name.removeprefix("vmlinuz-"): path for path in tree.glob("boot/vmlinuz-*")}
    for base in _MODULES:  # from Debian 14 on
        images.update((path.parent.name, path) for path in (tree / base).glob("*/vmlinuz"))
    if not images:
        hint = (
            "give a Debian kernel package; from Debian 14 on linux-binary-VERSION and linux-modules-VERSION"
        )
        raise UsageError("no kernel in the package", hint)
    version = max(images)
    (target / "vmlinux").write_bytes(unpack_bzimage(images[version].read_bytes()))
    (target / "modules").mkdir()
    found = {path.name.split(".ko")[0]: path for path in _module_files(tree, version)}
    names = []
    for number, name in enumerate(load_order((*NEEDED_MODULES, *NETWORK_MODULES), found)):
        names.append(f"{number:02d}-{name}.ko")
        (target / "modules" / names[-1]).write_bytes(_module_bytes(found[name]))
    usual = len(load_order(NEEDED_MODULES, found))
    (target / "kernel.json").write_bytes(msgspec.json.encode(_Record(version, names[:usual], names[usual:])))
    return version


def unpack_bzimage(data: bytes) -> bytes:
    """The ELF kernel inside a bzImage (x86 boot protocol 2.08 or later: payload_offset, payload_length)."""
    if data[0x202:0x206] != b"HdrS" or len(data) < 0x260:
        raise UsageError("the kernel image is no bzImage", "give a Debian kernel package")
    sectors = data[_SETUP_HEADER] or 4
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (sectors + 1) * 512 + offset
    image = _decompress(data[start : start + length])
    if not image.startswith(_ELF):
        raise UsageError("the kernel image holds no ELF kernel", "give a Debian kernel package")
    return image


def _decompress(payload: bytes) -> bytes:
    """A payload ends in its unpacked size (4 bytes), which decompressors must not take for data."""
    if payload.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(payload, UNPACKED_LIMIT)
    if payload.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=BytesIO(payload[:-4])).read(UNPACKED_LIMIT)
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(payload[:-4]).read(UNPACKED_LIMIT)
    raise UsageError(
        "the kernel image is compressed in a way the lab does not read", "give one with xz, gzip or zstd"
    )


def _module_files(tree: Path, version: str) -> Iterator[Path]:
    for base in _MODULES:
        yield from (tree / base / version / "kernel").rglob("*.ko*")


def _module_bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def load_order(needed: tuple[str, ...], found: dict[str, Path]) -> list[str]:
    """Names of the wanted modules and all they depend on, dependencies first; built-in ones are left out."""
    order: list[str] = []

    def visit(name: str) -> None:
        path = found.get(name) or found.get(name.replace("_", "-"))
        if path is None or (stem := path.name.split(".ko")[0]) in order:
            return
        for dependency in dependencies(_module_bytes(path)):
            visit(dependency)
        order.append(stem)

    for name in needed:
        visit(name)
    return order


def dependencies(module: bytes) -> list[str]:
    """What a kernel module says it depends on (`depends=` in its .modinfo section)."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        section = ELFFile(BytesIO(module)).get_section_by_name(".modinfo")
        entries = section.data().split(b"\0") if section else []
    except ELFError as error:
        raise UsageError(
            f"a kernel module cannot be read: {error}", "give a Debian kernel package"
        ) from error
    lists = [entry.removeprefix(b"depends=").decode() for entry in entries if entry.startswith(b"depends=")]
    return [name for text in lists for name in text.split(",") if name]
