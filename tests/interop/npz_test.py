"""NumPy and Python's zipfile read what Holdfast writes, and vice versa, bit for bit."""

import io
import json
import zipfile

import ml_dtypes
import numpy as np
import pytest

from exchange import arrays, assert_same_bits, convert, refusal


def load(path):
    """The arrays of numpy.load, with bfloat16 as the type of ml_dtypes."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name].view(ml_dtypes.bfloat16) if file[name].dtype == "V2" else file[name]
                for name in file.files}


def convert_twice(tmp_path):
    """Converts a.npz to a Holdfast file and that to b.npz."""
    convert("npz", "holdfast", tmp_path / "a.npz", tmp_path / "a.h5")
    convert("holdfast", "npz", tmp_path / "a.h5", tmp_path / "b.npz")
    return load(tmp_path / "b.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_numpy_reads_what_holdfast_writes(tmp_path, save):
    save(tmp_path / "a.npz", **arrays())

    assert_same_bits(convert_twice(tmp_path), arrays())


def test_numpy_reads_what_came_from_numpy_twice(tmp_path):
    """The second time, bfloat16 arrives as |V2."""
    values = np.arange(5).astype(ml_dtypes.bfloat16)
    np.savez(tmp_path / "first.npz", a=values)
    np.savez(tmp_path / "a.npz", **np.load(tmp_path / "first.npz"))

    assert_same_bits(convert_twice(tmp_path), {"a": values})


def test_arrays_in_fortran_order_and_of_big_endian_bytes(tmp_path):
    plain = {f"{shape}": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
             for shape in [(5, 7), (2, 3, 4), (1, 9), (2, 1, 2, 3, 2)]}
    np.savez(tmp_path / "a.npz", **{name: np.asfortranarray(array.astype(">f4")) for name, array in plain.items()})

    assert_same_bits(convert_twice(tmp_path), plain)


def test_all_versions_of_the_header(tmp_path):
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    for version in [(1, 0), (2, 0), (3, 0)]:
        member = io.BytesIO()
        np.lib.format.write_array(member, values, version=version)
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("a.npy", member.getvalue())

        assert_same_bits(convert_twice(tmp_path), {"a": values})


class Pipe(io.RawIOBase):
    """A file that cannot seek, so that zipfile writes data descriptors."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)

    def close(self):
        self.file.close()
        super().close()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("force_zip64", [False, True])
def test_archives_that_were_written_into_a_pipe(tmp_path, compression, force_zip64):
    values = np.arange(1000)
    with Pipe(tmp_path / "a.npz") as pipe, zipfile.ZipFile(pipe, "w", compression) as archive:
        for name in ["a.npy", "b.npy"]:
            with archive.open(name, "w", force_zip64=force_zip64) as member:
                np.save(member, values)

    assert_same_bits(convert_twice(tmp_path), {"a": values, "b": values})


def test_zipfile_finds_nothing_wrong_with_our_archives(tmp_path):
    np.savez(tmp_path / "a.npz", **arrays())
    convert_twice(tmp_path)

    with zipfile.ZipFile(tmp_path / "b.npz") as archive:
        assert archive.testzip() is None
        assert all(info.date_time == (1980, 1, 1, 0, 0, 0) for info in archive.infolist())
        assert [info.filename for info in archive.infolist()] == sorted(f"{name}.npy" for name in arrays())


def test_more_members_than_sixteen_bits_count(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        member = io.BytesIO()
        np.save(member, np.float32(5))
        for i in range(65_536):
            archive.writestr(f"{i}.npy", member.getvalue())

    convert("npz", "npz", tmp_path / "a.npz", tmp_path / "b.npz")

    with np.load(tmp_path / "b.npz") as file:
        assert len(file.files) == 65_536
        assert file["65535"] == 5


def test_metadata_is_a_member_of_its_own(tmp_path):
    metadata = json.dumps({"step": 5})
    np.savez(tmp_path / "a.npz", a=np.zeros(1))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("holdfast.metadata.json", metadata)

    convert("npz", "npz", tmp_path / "a.npz", tmp_path / "b.npz")

    assert np.load(tmp_path / "b.npz")["holdfast.metadata.json"] == metadata.encode()


def test_types_that_could_run_code_or_are_not_numbers_are_refused(tmp_path):
    structured = np.zeros(2, dtype=[("x", "f4"), ("y", "i2")])
    for name, values in {"objects": np.array([{}], dtype=object), "text": np.array(["é"]), "bytes": np.array([b"a"]),
                         "complex": np.zeros(2, np.complex64), "dates": np.zeros(2, "M8[s]"),
                         "structured": structured, "float8": np.zeros(2, ml_dtypes.float8_e4m3fn)}.items():
        np.savez(tmp_path / "a.npz", **{name: values}, allow_pickle=True)

        assert name in refusal("npz", tmp_path / "a.npz", tmp_path / "b.npz")
