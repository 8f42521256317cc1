"""The distribution holds every package and native part that the tree has."""

from pathlib import Path

ROOMS = ("common", "machine", "profiler", "analyzer", "mapper", "launcher", "lab")


def test_every_room_is_linked_by_the_name_that_imports_have(repository: Path) -> None:
    links = {
        path.name: path.resolve() for path in (repository / "src" / "numaplan").iterdir() if path.is_symlink()
    }
    assert links == {room: repository / room for room in ROOMS}


def test_every_folder_with_python_is_a_package(repository: Path) -> None:
    folders = {path.parent for room in ROOMS for path in (repository / room).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_native_folder_is_built(repository: Path) -> None:
    setup = (repository / "setup.py").read_text() + '"profiler/native/messages"'  # by the user's mpicc
    for room in ROOMS:
        for source in (repository / room).glob("native/*/*.c"):
            assert f'"{source.parent.relative_to(repository)}"' in setup, source


def test_the_lock_names_no_address(repository: Path) -> None:
    assert "://" not in (repository / "requirements.lock").read_text()
