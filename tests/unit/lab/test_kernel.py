"""What a guest boots: the kernel out of its package, its modules, the initial files."""

import gzip
import lzma
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.lab.guest.initramfs import cpio
from numaplan.lab.guest.kernel import dependencies, import_kernel, load_order, unpack_bzimage
from numaplan.lab.setup.fetch import set_up


def test_the_archive_is_one_that_cpio_reads() -> None:
    data = cpio([("dir", 0o40755, b"", (0, 0)), ("dir/file", 0o100644, b"content", (0, 0))])
    assert len(data) % 4 == 0
    assert data.startswith(b"070701")
    assert data.count(b"070701") == 3
    fields = [int(data[6 + 8 * k : 14 + 8 * k], 16) for k in range(13)]
    assert fields[1] == 0o40755
    assert fields[11] == len("dir") + 1
    assert b"dir/file\0" in data
    assert b"content\0" in data


def bzimage(payload: bytes, unpacked: int) -> bytes:
    """A kernel image as the boot protocol has it: a header, some code, the payload and its unpacked size."""
    head = bytearray(1024)
    head[0x1F1] = 1
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", head, 0x248, 100, len(payload) + 4)
    return bytes(head) + bytes(100) + payload + struct.pack("<I", unpacked) + b"tail"


@pytest.mark.parametrize("compress", [lzma.compress, gzip.compress])
def test_kernels_are_unpacked(compress: object) -> None:
    kernel = b"\x7fELF" + random.Random(1).randbytes(5000)
    assert unpack_bzimage(bzimage(compress(kernel), len(kernel))) == kernel  # type: ignore[operator]


@pytest.mark.parametrize("place", ["boot/vmlinuz-7.2+deb", "usr/lib/modules/7.2+deb/vmlinuz"])
def test_the_kernel_is_found_where_packages_have_it(tmp_path: Path, place: str) -> None:
    kernel = b"\x7fELF" + bytes(100)
    image, prepared = tmp_path / "tree" / place, tmp_path / "prepared"
    image.parent.mkdir(parents=True)
    prepared.mkdir()
    with pytest.raises(UsageError, match="no kernel in the package"):
        import_kernel(tmp_path / "tree", prepared)
    image.write_bytes(bzimage(gzip.compress(kernel), len(kernel)))
    assert import_kernel(tmp_path / "tree", prepared) == "7.2+deb"
    assert (prepared / "vmlinux").read_bytes() == kernel


@pytest.mark.parametrize("data", [b"", b"HdrS" * 400, bytes(2000)])
def test_what_is_no_kernel_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError):
        unpack_bzimage(data)
    for payload in (b"what is this", lzma.compress(b"no ELF file")):
        with pytest.raises(UsageError):
            unpack_bzimage(bzimage(payload, 11))


def test_modules_are_loaded_after_what_they_need(tmp_path: Path) -> None:
    needs = {"top": "mid_dle,low", "mid-dle": "low,built_in", "low": ""}
    for name, others in needs.items():
        text = f'const char info[] __attribute__((section(".modinfo"))) = "license=GPL\\0depends={others}";'
        (tmp_path / "x.c").write_text(text)
        subprocess.run(["cc", "-c", tmp_path / "x.c", "-o", tmp_path / f"{name}.ko"], check=True, timeout=60)
    found = {name: tmp_path / f"{name}.ko" for name in needs}
    assert load_order(("top",), found) == ["low", "mid-dle", "top"]
    assert dependencies(found["top"].read_bytes()) == ["mid_dle", "low"]
    with pytest.raises(UsageError):
        dependencies(b"not an ELF file")


def test_packages_that_are_none_are_misuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    text = tmp_path / "text.deb"
    text.write_text("no package")
    for package in (text, tmp_path / "none.deb"):
        with pytest.raises(UsageError):
            set_up([package], False, lambda _text: None)
    assert not list((tmp_path / "numaplan" / "lab").glob(".setup-*"))
