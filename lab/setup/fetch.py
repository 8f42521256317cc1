"""`nlab setup`: get QEMU and a kernel. All files go under the user's cache folder but for QEMU's package."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from numaplan.common import MachineLacksError, UsageError, one_setup_at_a_time, output_of, temporary_folder

from ..guest.kernel import Kernel, import_kernel, installed_kernel
from ..places import QEMU, cache_folder

QEMU_PACKAGE = "qemu-system-x86"
KERNEL_PACKAGE = "linux-image-amd64"
_KERNEL_NAME = re.compile(r"Depends: (linux-image-[0-9][a-z0-9.+-]*)")
_PART_NAME = re.compile(r"Depends: (linux-(?:binary|modules)-[0-9][a-z0-9.+-]*)")  # from Debian 14 on


def set_up(packages: Sequence[Path], renew: bool, say: Callable[[str], None]) -> Kernel:
    """Install QEMU where it is missing, fetch and unpack a kernel where there is none (or `renew`).

    packages: kernel packages (.deb) to use instead of fetching one. Raises MachineLacksError with the command
    that fixes what cannot be done here. Killed at any moment, it leaves nothing that a later run would take
    for whole.
    """
    if shutil.which(QEMU) is None:
        _install_qemu(say)
    folder = cache_folder()
    with one_setup_at_a_time(folder):
        if not packages and not renew:
            with suppress(MachineLacksError):
                kernel = installed_kernel()
                if kernel.overlays and kernel.network:
                    return kernel
        with temporary_folder(".setup-", folder) as work:
            _fetch_and_import(work, list(packages), folder, say)
    return installed_kernel()


def _install_qemu(say: Callable[[str], None]) -> None:
    command = ["apt-get", "install", "-y", "--no-install-recommends", QEMU_PACKAGE]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise MachineLacksError(f"{QEMU} is not installed", f"as root: {' '.join(command)}")
    say(f"installing {QEMU_PACKAGE} (the only thing outside the cache folder)")
    output_of(command, Path.cwd(), "QEMU could not be installed")


def _fetch_and_import(work: Path, packages: list[Path], folder: Path, say: Callable[[str], None]) -> None:
    for package in packages:
        if not package.is_file():
            raise UsageError(f"{package}: no such file", "give a Debian kernel package")
    if shutil.which("dpkg-deb") is None:
        raise MachineLacksError("dpkg-deb, which unpacks the kernel, is not installed", "install dpkg")
    packages = [path.absolute() for path in packages] or _fetch(work, say)
    tree = work / "tree"
    for package in packages:
        say(f"unpacking {package.name}")
        try:
            output_of(["dpkg-deb", "-x", str(package), str(tree)], work, f"{package} could not be unpacked")
        except MachineLacksError as error:
            raise UsageError(error.what, "give a Debian kernel package (linux-image-VERSION_….deb)") from None
    prepared = work / "kernel"
    prepared.mkdir()
    version = import_kernel(tree, prepared)
    target = folder / f"kernel-{version}"
    if target.exists():
        target.rename(work / "old")
    prepared.rename(target)
    os.utime(target / "kernel.json")


def _fetch(work: Path, say: Callable[[str], None]) -> list[Path]:
    """Download the kernel package that Debian's linux-image-amd64 points to, and those it consists of."""
    if shutil.which("apt-get") is None:
        raise MachineLacksError(
            "apt-get, which fetches the kernel, is not installed",
            "give a Debian kernel package: nlab setup --deb FILE",
        )
    listing = output_of(["apt-cache", "depends", KERNEL_PACKAGE], work, f"{KERNEL_PACKAGE} is unknown")
    found = _KERNEL_NAME.search(listing)
    if found is None:
        raise MachineLacksError(
            f"this system has no package {KERNEL_PACKAGE}",
            "as root: apt-get update; or nlab setup --deb FILE",
        )
    listing = output_of(["apt-cache", "depends", found[1]], work, f"{found[1]} is unknown")
    names = _PART_NAME.findall(listing) or [found[1]]
    say(f"fetching {', '.join(names)}")
    output_of(["apt-get", "download", *names], work, f"{', '.join(names)} could not be fetched")
    return sorted(work.glob("*.deb"))
