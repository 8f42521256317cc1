"""The programs that tests compile: each once, for all tests, workers and runs."""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = REPOSITORY / "tests" / "programs"
EXAMPLES = REPOSITORY / "examples"
CACHE = REPOSITORY / "build" / "tests"
OPTIMISED = ("-O2", "-g", "-pthread")
STRICT = ("-std=c11", "-O1", "-Wall", "-Wextra", "-Werror")


def compiled(
    *sources: Path, flags: tuple[str, ...] = OPTIMISED, compiler: str = "cc", name: str = ""
) -> Path:
    """The program of these sources; skips the test where the compiler is missing.

    flags: what stands behind the sources, libraries too; name: the program's, else that of the first source.
    """
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    name = name or sources[0].stem
    command = [compiler, "-o", name, *sources, *flags]
    return kept(command, lambda folder: _compile(folder, command)) / name


def sanitized(*sources: Path, sanitizer: str, flags: tuple[str, ...] = ()) -> Path:
    """A program whose errors a sanitizer makes fatal; skips the test where gcc has none of that name."""
    all_flags = ("-O1", "-g", "-D_GNU_SOURCE", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", *flags)
    try:
        return compiled(*sources, flags=all_flags, compiler="gcc")
    except subprocess.CalledProcessError as error:
        if "cannot find" in error.stderr:
            pytest.skip(f"gcc has no {sanitizer} sanitizer here")
        raise AssertionError(error.stderr) from None


def kept(words: Sequence[str | Path], make: Callable[[Path], None]) -> Path:
    """A folder that `make` has filled, now or before, for these words and what their files hold."""
    folder = CACHE / _digest(words)
    CACHE.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as place:
                made = Path(place) / "made"
                made.mkdir()
                make(made)
                made.rename(folder)
    return folder


def _compile(folder: Path, command: Sequence[str | Path]) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=240)


def _digest(words: Sequence[str | Path]) -> str:
    """Of the words, the files among them, and the headers beside these and in the folders given by -I."""
    digest = hashlib.sha256()
    for word in words:
        digest.update(f"{word}\0".encode())
        for file in _files(word):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:20]


def _files(word: str | Path) -> Iterator[Path]:
    if isinstance(word, Path):
        yield word
        yield from sorted(word.parent.glob("*.h"))
    elif word.startswith("-I"):
        yield from sorted(Path(word[2:]).glob("*.h"))
