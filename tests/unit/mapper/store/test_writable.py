"""Whether a plan could be stored is known before the work of making one."""

from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.mapper.store.places import LocalPlace

PARTS = ("build", "machine", "r1-tany-0123456789ab.json")


@pytest.mark.parametrize("folder", ["", "build", "build/machine"])
def test_a_folder_that_may_not_be_trusted(folder: str, tmp_path: Path) -> None:
    place = LocalPlace(str(tmp_path / "store"))
    place.check_writable(PARTS)
    place.write(PARTS, b"{}")
    place.check_writable(PARTS)
    (tmp_path / "store" / folder).chmod(0o775)
    for refused in (place.check_writable, lambda parts: place.write(parts, b"{}")):
        with pytest.raises(UsageError, match="others may write to it"):
            refused(PARTS)


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    place, file = LocalPlace(str(tmp_path)), tmp_path.joinpath(*PARTS)
    file.mkdir(parents=True)
    for refused in (place.check_writable, lambda parts: place.write(parts, b"{}"), place.remove):
        with pytest.raises(UsageError, match=f"^{file}: is a folder"):
            refused(PARTS)
    file.rmdir()
    file.parent.rmdir()
    file.parent.write_text("no folder")
    with pytest.raises(UsageError, match="machine: is not a folder"):
        place.check_writable(PARTS)
