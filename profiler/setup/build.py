"""Building QEMU's user mode with plugins from its sources."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from numaplan.common import MachineLacksError, output_of

_PACKAGES = "gcc libc6-dev libglib2.0-dev meson ninja-build pkg-config python3-pycotap python3-venv xz-utils"
_PYTHON = "/usr/bin/python3"  # which has the distribution's meson; that of a virtual environment has none
_LEFT_OUT = ("system", "tools", "docs", "install-blobs")


def build_qemu(sources: Path, work: Path, architecture: str, say: Callable[[str], None]) -> Path:
    """Unpack and build qemu-ARCH in `work`; takes minutes. Raises MachineLacksError for what is missing.

    As root it installs what it needs to build; nobody else can.
    """
    _get_ready(say)
    tree = work / "qemu"
    tree.mkdir()
    unpack = ["tar", "-xf", str(sources), "-C", str(tree), "--strip-components=1"]
    output_of(unpack, work, "QEMU's sources could not be unpacked")
    leave_out_device_trees(tree)
    build = tree / "build"
    build.mkdir()
    program = f"qemu-{architecture}"
    configure = [
        "../configure",
        f"--python={_PYTHON}",
        f"--target-list={architecture}-linux-user",
        "--without-default-features",
    ]
    configure += ["--enable-tcg", "--enable-plugins", *(f"--disable-{part}" for part in _LEFT_OUT)]
    say(f"building {program} (some minutes)")
    output_of(configure, build, "QEMU could not be configured")
    output_of(["ninja", program], build, "QEMU could not be built")
    return build / program


def leave_out_device_trees(tree: Path) -> None:
    """Of machines: user mode has none, but QEMU 10.2 wants them where no `dtc` makes them."""
    for source in tree.glob("pc-bios/dtb/*.dts"):
        source.with_suffix(".dtb").touch()


def _get_ready(say: Callable[[str], None]) -> None:
    """Raise MachineLacksError when there is nothing to build with, and it cannot be installed."""
    tools = [tool for tool in ("cc", "meson", "ninja", "pkg-config", "xz") if shutil.which(tool) is None]
    if not tools and not _has_glib():
        tools = ["glib"]
    if not tools:
        return
    command = f"apt-get install -y --no-install-recommends {_PACKAGES}"
    if os.geteuid():
        raise MachineLacksError(f"building QEMU needs {', '.join(tools)}", f"as root: {command}")
    say("installing what QEMU is built with")
    output_of(["apt-get", "-qq", "update"], Path("/"), "the lists of packages could not be fetched")
    output_of(command.split(), Path("/"), "what QEMU is built with could not be installed")


def _has_glib() -> bool:
    return not subprocess.run(["pkg-config", "--exists", "glib-2.0"], check=False).returncode
