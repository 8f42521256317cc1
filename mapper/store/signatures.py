"""Signatures of plans that lie where others could write, made and checked by `ssh-keygen -Y`.

What is signed is the plan together with its place in the store: a good plan is none for another program.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from numaplan.common import MachineLacksError, UsageError, temporary_folder

from .folders import RefusedError, opened_folder, read_file

NAMESPACE = "numaplan-plan"
LIMIT = 64 << 10  # bytes of a signature
_MOST_SIGNERS = 4 << 20
_SECONDS = 20.0
_TOOL = "ssh-keygen"
_NAMESPACES = re.compile(rb'\s*\S+\s+(?:[^"\s]|"[^"]*")*?\bnamespaces="([^"]*)"', re.IGNORECASE)


class WrongSignatureError(RefusedError):
    """Somebody signed who may, but something else."""


class Signatures:
    """Who may sign, and what we sign with.

    signers: an allowed-signers file as `man ssh-keygen` has it; empty: below XDG_CONFIG_HOME. sign_with: a
    private key, or a public one that ssh-agent has; empty: nothing is signed.
    """

    def __init__(self, signers: str, sign_with: str) -> None:
        self._signers = signers or _usual_signers()
        self._key = sign_with

    def check_key(self) -> None:
        """Raise UsageError where nothing can be signed."""
        if not self._key:
            raise UsageError(
                "a plan that is stored elsewhere must be signed", "add --sign KEY (of ssh-keygen)"
            )

    def sign(self, parts: Sequence[str], data: bytes) -> bytes:
        """The signature of a file of the store; raises UsageError, MachineLacksError."""
        if not self._key:
            raise UsageError(
                "a plan that is stored elsewhere must be signed", "add --sign KEY (of ssh-keygen)"
            )
        done = _run(["sign", "-n", NAMESPACE, "-f", self._key], _message(parts, data))
        if done.returncode or not done.stdout:
            raise UsageError(f"--sign {self._key}: {_said(done)}", "give a key that ssh-keygen -Y sign takes")
        return done.stdout

    def check(self, parts: Sequence[str], data: bytes, signature: bytes) -> str:
        """Who signed a file of the store; raises RefusedError where nobody did who may.

        WrongSignatureError: somebody did, but not this text in this place.
        """
        where = "/".join(parts)
        allowed = self._allowed()
        with temporary_folder("numaplan-signature-") as folder:
            (folder / "allowed").write_bytes(_for_plans(allowed))
            (folder / "signature").write_bytes(signature)
            files = ["-f", str(folder / "allowed"), "-s", str(folder / "signature")]
            found = _run(["find-principals", *files], b"")
            names = found.stdout.decode(errors="replace").splitlines()
            if found.returncode or not names:
                raise RefusedError(
                    f"{where}: not signed by anyone of {self._signers}", "add who may, or drop it"
                )
            words = ["verify", *files, "-I", names[0], "-n", NAMESPACE]
            done = _run(words, _message(parts, data))
        if done.returncode:
            said = _said(done).replace(f"{folder / 'allowed'}:", f"{self._signers}:")
            raise WrongSignatureError(f"{where}: its signature is wrong: {said}", "put it there again")
        return names[0]

    def _allowed(self) -> bytes:
        path = os.path.abspath(self._signers)  # noqa: PTH100
        folder, _, name = path.rpartition("/")
        try:
            with opened_folder(folder or "/") as opened:
                return read_file(opened, name, path, _MOST_SIGNERS)[0]
        except FileNotFoundError:
            raise RefusedError(
                f"no file of those who may sign: {path}", "write one, or give --signers"
            ) from None


def _for_plans(allowed: bytes) -> bytes:
    """An allowed-signers file without the lines that are for other things, such as git.

    `ssh-keygen` looks no further than the first line with a key: another with the same key may be for plans.
    """
    lines = allowed.split(b"\n")
    return b"\n".join(line if _is_for_plans(line) else b"" for line in lines)


def _is_for_plans(line: bytes) -> bool:
    found = _NAMESPACES.match(line)
    patterns = found[1].decode(errors="replace").split(",") if found else ["*"]
    return any(fnmatchcase(NAMESPACE, pattern.strip()) for pattern in patterns)


def _usual_signers() -> str:
    base = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else Path(os.path.expanduser("~")) / ".config"  # noqa: PTH111
    return str(folder / "numaplan" / "allowed_signers")


def _message(parts: Sequence[str], data: bytes) -> bytes:
    return "/".join(parts).encode() + b"\n" + data


def _run(words: Sequence[str], message: bytes) -> "subprocess.CompletedProcess[bytes]":
    command = [_TOOL, "-Y", *words]
    try:
        return subprocess.run(command, input=message, capture_output=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise MachineLacksError(f"no {_TOOL}, which checks signatures", "install openssh-client") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineLacksError(f"{_TOOL}: {error}", "see whether it works by itself") from error


def _said(done: "subprocess.CompletedProcess[bytes]") -> str:
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else f"exit code {done.returncode}"
