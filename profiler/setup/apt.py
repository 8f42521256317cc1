"""Packages by the system's own apt, but with lists and files of its own: nothing of the system is changed.

No privilege is needed. The mirror is the one that the system is set up with, the keys are the distribution's,
and it is apt that checks what it fetches by them.
"""

import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

from numaplan.common import MachineLacksError, output_of

_KEYS = Path("/usr/share/keyrings")
_STATUS = Path("/var/lib/dpkg/status")  # which packages the system has
_HINT = "check the network and the mirror in /etc/apt/sources.list"
_COMPONENTS = {"debian": "main", "ubuntu": "main universe"}


def distribution() -> str:
    """`debian` or `ubuntu`, also for what derives from them; "" for others."""
    facts = _os_release()
    names = [facts.get("ID", ""), *facts.get("ID_LIKE", "").split()]
    return next((name for name in ("ubuntu", "debian") if name in names), "")


class PrivateApt:
    """apt in a folder that `_apt`, the user apt downloads as, must be able to enter; `suite`: where from.

    suite: a release by its name; "" is the system's own. kind: `deb` or `deb-src`.
    """

    def __init__(self, folder: Path, kind: str, suite: str = "") -> None:
        self._folder = folder
        keys = _KEYS / f"{distribution()}-archive-keyring.gpg"
        mirror, own = _mirror(folder)
        words = [kind, f"[signed-by={keys}]", mirror, suite or own, _COMPONENTS[distribution()]]
        (folder / "sources.list").write_text(f"{' '.join(words)}\n")
        for part in ("lists", "archives"):
            (folder / part / "partial").mkdir(parents=True)
        # A copy: beside this file apt takes the locks that only root may take there.
        shutil.copyfile(_STATUS, folder / "status")
        settings = {
            "Dir::State": folder,
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder,
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "Acquire::Languages": "none",
            "APT::Update::Error-Mode": "any",  # else lists that it cannot reach are a warning
            "APT::Get::AllowUnauthenticated": "false",
            "Acquire::AllowInsecureRepositories": "false",
        }
        self._apt = ["apt-get", "-qq", "-y", *(f"-o{name}={value}" for name, value in settings.items())]
        output_of([*self._apt, "update"], folder, "the list of packages could not be fetched", _HINT)

    def packages(self, names: Sequence[str]) -> list[Path]:
        """Packages and what they need that the system lacks, as files."""
        command = [*self._apt, "install", "--download-only", "--no-install-recommends", "--allow-downgrades"]
        # Reinstalling: also what the system has in this very version, perhaps without its libraries.
        problem = f"{names[0].partition('/')[0]} could not be fetched"
        output_of([*command, "--reinstall", *names], self._folder, problem, _HINT)
        return sorted((self._folder / "archives").glob("*.deb"))

    def source(self, name: str) -> Path:
        """The upstream sources of a package, as a tar file."""
        problem = f"the sources of {name} could not be fetched"
        output_of([*self._apt, "source", "--download-only", name], self._folder, problem, _HINT)
        return next(self._folder.glob(f"{name}_*.orig.tar.*"))


def _mirror(folder: Path) -> tuple[str, str]:
    """(address, release) that the system's apt fetches the distribution's packages of."""
    facts = _os_release()
    releases = [facts.get("UBUNTU_CODENAME", ""), facts.get("VERSION_CODENAME", "")]
    hint = "check /etc/apt/sources.list"
    command = ["apt-get", "indextargets", "--format", "$(CREATED_BY) $(RELEASE) $(REPO_URI)"]
    listed = output_of(command, folder, "apt does not say where it fetches from", hint).splitlines()
    found = [words for words in map(str.split, listed) if len(words) == 3 and words[0] == "Packages"]
    for release in filter(None, releases):
        for _, name, address in found:
            if name == release:
                return address, release
    raise MachineLacksError(f"apt fetches no packages of {' or '.join(filter(None, releases))}", hint)


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}
