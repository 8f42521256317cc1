"""comm.csv and loads.csv: every digit, and refusals."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.mapper.workload.files import read_comm, read_loads
from tests.support.properties import examples


@examples(50)
@given(values=st.lists(st.floats(0, 1e300), min_size=1, max_size=30))
def test_every_digit_is_read(values: list[float], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("csv")
    comm = np.zeros((len(values) + 1, len(values) + 1))
    comm[0, 1:] = comm[1:, 0] = values
    np.savetxt(folder / "comm.csv", comm, "%.17g", ",")
    np.savetxt(folder / "loads.csv", values, "%.17g")
    assert np.array_equal(read_comm(folder / "comm.csv").comm, comm)
    assert read_loads(folder / "loads.csv").tolist() == values


@pytest.mark.parametrize(
    "text,words",
    [
        ("", "0 rows"),
        ("0,1\n1\n", "row 1 has 1 columns in a matrix of 2 rows"),
        ("0,1,2\n1,0,2\n", "row 0 has 3 columns in a matrix of 2 rows"),
        ("0,x\n1,0\n", "row 0, column 1: 'x' is not a number"),
        ("0,-1\n-1,0\n", "-1 at row 0, column 1"),
        ("0,nan\nnan,0\n", "nan at row 0, column 1"),
        ("0,1e999\n1e999,0\n", "inf at row 0, column 1"),
        ("0;1\n1;0\n", "row 0 has 1 columns"),
    ],
)
def test_bad_matrices_are_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "comm.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=words) as error:
        read_comm(path)
    assert str(error.value).startswith(str(path))


def test_odd_but_readable_matrices(tmp_path: Path) -> None:
    path = tmp_path / "comm.csv"
    path.write_bytes(b"\xef\xbb\xbf0.00, 2.5 ,\r\n2.5,0,\r\n\r\n")
    assert read_comm(path).comm.tolist() == [[0, 2.5], [2.5, 0]]


def test_a_matrix_of_directions_is_refused_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "comm.csv"
    path.write_text("5,4\n2,7\n")
    with pytest.raises(UsageError, match=r"4 at row 0, column 1 but 2 at row 1, column 0") as error:
        read_comm(path)
    assert "--symmetrise" in error.value.hint
    found = read_comm(path, symmetrise=True)
    assert found.comm.tolist() == [[0, 3], [3, 0]]
    assert "not symmetric" in found.note


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "comm.csv"
    path.write_bytes(b"0,\xff\n1,0\n")
    with pytest.raises(UsageError, match="not text"):
        read_comm(path)
    for name in ("comm.npz", "comm.mtx"):
        path = tmp_path / name
        path.write_bytes(b"\x00rubbish")
        with pytest.raises(UsageError, match=name):
            read_comm(path)


def test_an_archive_of_other_arrays(tmp_path: Path) -> None:
    path = tmp_path / "comm.npz"
    np.savez(path, thread=np.arange(3))
    with pytest.raises(UsageError) as error:
        read_comm(path)
    assert error.value.what == f"{path}: holds arrays, but no sparse matrix"


def test_sparse_files_that_claim_too_much(tmp_path: Path) -> None:
    head = b"%%MatrixMarket matrix coordinate real general\n"
    for sizes in (b"3 3 2000000000\n1 1 1\n", b"2000000000 2000000000 1\n1 1 1\n", b"3 3\n", b"x\n", b""):
        (tmp_path / "comm.mtx").write_bytes(head + sizes)
        with pytest.raises(UsageError, match=r"comm\.mtx"):
            read_comm(tmp_path / "comm.mtx")
    with zipfile.ZipFile(tmp_path / "comm.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", bytes(1 << 20))
    bomb = bytearray((tmp_path / "comm.npz").read_bytes())
    place = bomb.index(b"PK\x01\x02") + 24
    bomb[place : place + 4] = (0xF0000000).to_bytes(4, "little")  # the unpacked size that the index claims
    (tmp_path / "comm.npz").write_bytes(bytes(bomb))
    with pytest.raises(UsageError, match="unpacks to more"):
        read_comm(tmp_path / "comm.npz")


def test_sparse_files(tmp_path: Path) -> None:
    from scipy import io, sparse

    comm = sparse.coo_array(([1.0, 1.0], ([0, 2], [2, 0])), shape=(3, 3))
    sparse.save_npz(tmp_path / "comm.npz", comm.tocsr())
    io.mmwrite(tmp_path / "comm.mtx", comm)
    for name in ("comm.npz", "comm.mtx"):
        assert np.array_equal(read_comm(tmp_path / name).comm, comm.toarray())


@pytest.mark.parametrize(
    "text,words",
    [("", "empty"), ("1\nx\n", "row 1: 'x' is not a number"), ("1\n-2\n", "-2 at row 1"), ("nan\n", "row 0")],
)
def test_bad_loads_are_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "loads.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        read_loads(path)


def test_published_matrices(shared_fixtures: Path) -> None:
    import csv

    folder = shared_fixtures / "matrices"
    with (folder / "manifest.csv").open() as file:
        for row in csv.DictReader(file):
            truth = json.loads(row["truth"])
            if truth.get("reject"):
                with pytest.raises(UsageError):
                    read_comm(folder / row["file"])
                continue
            if not truth["symmetric"]:
                with pytest.raises(UsageError, match="not symmetric"):
                    read_comm(folder / row["file"])
            found = read_comm(folder / row["file"], symmetrise=True)
            assert found.comm.shape == (truth["n"], truth["n"])
            assert bool(found.note) == (not truth["symmetric"])
            if truth["diagonal_zero"]:
                assert found.comm.sum() == pytest.approx(truth["sum"])
