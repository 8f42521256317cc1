"""What a list of a store tells of that which is not to be trusted, or is no plan."""

import json
from pathlib import Path

import pytest

from numaplan.mapper.store.listing import rows_of
from tests.support.commands import succeed
from tests.support.stores import key_of, put, store_in


@pytest.mark.parametrize("levels", [1, 2])
def test_a_folder_that_others_may_write_is_named(tmp_path: Path, levels: int) -> None:
    store = store_in(tmp_path / "store")
    folder = put(store, key_of()).parents[levels - 1]
    folder.chmod(0o777)
    refused: list[str] = []
    assert not rows_of(store, refused)
    assert refused == [f"{folder}: others may write to it"]
    listing = "nmap", "store", "list", "--store", tmp_path / "store"
    assert f"refused: {folder}" in succeed(*listing).decode()
    document = json.loads(succeed(*listing, "--json"))
    assert document["plans"] == [] and document["refused_folders"] == refused


@pytest.mark.parametrize("text", ['{"app":{},"machine":{}}', '{"schema":"numaplan/plan/1"', ""])
def test_what_is_no_plan_is_named_and_refused(tmp_path: Path, text: str) -> None:
    store = store_in(tmp_path / "store")
    file = put(store, key_of())
    file.write_text(text)
    (row,) = rows_of(store)
    assert row.state == "refused" and row.refused.startswith(f"{file}: is no plan")
