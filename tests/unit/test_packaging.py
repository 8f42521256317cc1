"""The distribution holds every package and native part that the tree has."""

import tomllib
from pathlib import Path

ROOMS = ("common", "profiler", "analyzer", "mapper", "launcher")


def test_every_folder_with_python_is_a_listed_package(repository: Path) -> None:
    listed = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {
        "numaplan." + ".".join(path.parent.relative_to(repository).parts)
        for room in ROOMS
        for path in (repository / room).rglob("*.py")
    }
    assert sorted(listed) == sorted(found)


def test_every_native_folder_is_built(repository: Path) -> None:
    setup = (repository / "setup.py").read_text()
    for room in ROOMS:
        for source in (repository / room).glob("native/*/*.c"):
            assert f'"{source.parent.relative_to(repository)}"' in setup, source


def test_the_lock_names_no_address(repository: Path) -> None:
    assert "://" not in (repository / "requirements.lock").read_text()
