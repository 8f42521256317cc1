"""Getting a QEMU that takes our plugin into the user's cache folder: fetched as a package, else built."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from numaplan.common import (
    MachineLacksError,
    cache_folder,
    one_setup_at_a_time,
    output_of,
    temporary_folder,
)

from ..backends.emulation.guest import ARCHITECTURES
from ..backends.emulation.qemu import (
    CACHE,
    LOADER,
    check_plugin,
    fetched,
    find_qemu,
    host_architecture,
    refusal,
    with_interface,
)
from .apt import PrivateApt, distribution
from .build import build_qemu

# The last releases whose qemu-user is linked dynamically, and so has plugins.
LAST_WITH_PLUGINS = {"debian": "bookworm", "ubuntu": "noble"}
_PACKAGE = "qemu-user"


def set_up(renew: bool, from_source: bool, say: Callable[[str], None]) -> list[str]:
    """The words that start a QEMU that takes our plugin; gets one where there is none (or `renew`).

    from_source: build it rather than fetch it. Raises MachineLacksError with what can be done here. Killed at
    any moment, it leaves nothing that a later run would take for whole.
    """
    check_plugin()
    architecture = host_architecture()
    if not renew and not from_source:
        with suppress(MachineLacksError):
            return find_qemu(architecture)
    bring = f"put a qemu-{architecture} that is built with --enable-plugins on PATH"
    if not distribution() or shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise MachineLacksError(
            "no QEMU here takes plugins, and this is no Debian or Ubuntu to fetch one from", bring
        )
    folder = cache_folder(CACHE)
    with one_setup_at_a_time(folder.parent), temporary_folder(".setup-", folder.parent) as work:
        ways = [_built] if from_source else [_packaged, _built]
        reasons = []
        for way in ways:
            try:
                prepared = way(work, architecture, say)
                if reason := refusal(with_interface(fetched(architecture, prepared))):
                    raise MachineLacksError(f"this QEMU {reason}", "")
            except MachineLacksError as error:
                say(error.what)
                reasons.append(error)
                continue
            if folder.exists():
                folder.rename(work / "old")
            prepared.rename(folder)
            return with_interface(fetched(architecture))
    what = "; ".join(dict.fromkeys(reason.what for reason in reasons))
    raise MachineLacksError(what, f"{reasons[-1].hint}, or {bring}" if reasons[-1].hint else bring)


@contextmanager
def _apt_folder() -> Iterator[Path]:
    """Outside of the user's home, which `_apt` may not enter."""
    with temporary_folder("numaplan-apt-") as folder:
        folder.chmod(0o755)
        yield folder


def _packaged(work: Path, architecture: str, say: Callable[[str], None]) -> Path:
    suite = LAST_WITH_PLUGINS[distribution()]
    say(f"fetching {_PACKAGE} of {distribution()} {suite}")
    tree, prepared = work / "tree", work / "packaged"
    with _apt_folder() as folder:
        for package in PrivateApt(folder, "deb", suite).packages([f"{_PACKAGE}/{suite}"]):
            say(f"unpacking {package.name}")
            output_of(
                ["dpkg-deb", "-x", str(package), str(tree)], work, f"{package.name} could not be unpacked"
            )
    (prepared / "bin").mkdir(parents=True)
    (prepared / "lib").mkdir()
    for name in ARCHITECTURES.values():
        if (tree / f"usr/bin/qemu-{name}").is_file():
            shutil.move(tree / f"usr/bin/qemu-{name}", prepared / "bin")
    for library in [path for part in ("lib", "usr/lib") for path in (tree / part).glob("*/*.so.*")]:
        shutil.move(library, prepared / "lib" / library.name)
    (prepared / LOADER).symlink_to(_loader(prepared / f"bin/qemu-{architecture}"))
    return prepared


def _loader(program: Path) -> str:
    """The dynamic loader that a program asks for."""
    from elftools.elf.elffile import ELFFile

    try:
        with program.open("rb") as file:
            for segment in ELFFile(file).iter_segments("PT_INTERP"):
                return segment.data().rstrip(b"\0").decode()
    except OSError as error:
        raise MachineLacksError(f"{_PACKAGE} has no {program.name}", "") from error
    raise MachineLacksError(f"{program.name} is linked statically", "")


def _built(work: Path, architecture: str, say: Callable[[str], None]) -> Path:
    with _apt_folder() as folder:
        say("fetching QEMU's sources")
        sources = PrivateApt(folder, "deb-src").source("qemu")
        program = build_qemu(sources, work, architecture, say)
    prepared = work / "built"
    (prepared / "bin").mkdir(parents=True)
    shutil.move(program, prepared / "bin")
    return prepared
