"""Other HDF5 programs and holdfast_format read the files that Holdfast wrote, bit for bit.

The process of pytest has hdf5plugin loaded. Tests that must work without it start a process of their own.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import h5py
import hdf5plugin
import ml_dtypes
import numpy
import pytest

BUILD = pathlib.Path(os.environ["HOLDFAST_BUILD"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PLUGINS = BUILD / "hdf5-plugins"
DEBIAN_PYTHON = "/usr/bin/python3"
MODES = ["fast", "zstd", "none"]

sys.path.insert(0, str(SOURCE / "python"))
import holdfast_format  # noqa: E402

NUMPY_TYPES = {
    "f64": numpy.float64, "f32": numpy.float32, "f16": numpy.float16, "bf16": ml_dtypes.bfloat16,
    "i8": numpy.int8, "i16": numpy.int16, "i32": numpy.int32, "i64": numpy.int64,
    "u8": numpy.uint8, "u16": numpy.uint16, "u32": numpy.uint32, "u64": numpy.uint64, "boolean": numpy.bool_,
}  # fmt: skip
# Types that HDF5 lacks, as other programs see them.
HDF5_TYPES = {**NUMPY_TYPES, "bf16": numpy.uint16, "boolean": numpy.uint8}

# Compares a file's arrays with their expected bytes, with h5py alone, and prints their number.
READ_ALL = """
import json, pathlib, sys
import h5py
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
arrays = json.loads((folder / "arrays.json").read_text())
with h5py.File(folder / name, "r") as file:
    for array in arrays:
        content = file[array["name"]][()]
        assert list(content.shape) == array["shape"], array
        assert content.tobytes() == (folder / array["file"]).read_bytes(), array
assert "hdf5plugin" not in sys.modules
print(len(arrays), h5py.version.hdf5_version)
"""


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    subprocess.run([BUILD / "bin" / "write_samples_program", folder], check=True)
    return folder


@pytest.fixture(scope="session")
def arrays(samples):
    return json.loads((samples / "arrays.json").read_text())


def raw(samples, array):
    return (samples / array["file"]).read_bytes()


def environment(plugins):
    return {**os.environ, "HDF5_PLUGIN_PATH": str(plugins), "PYTHONPATH": str(SOURCE / "python")}


def run_python(script, *arguments, plugins=PLUGINS, python=sys.executable):
    command = [python, "-c", script, *map(str, arguments)]
    return subprocess.run(command, env=environment(plugins), capture_output=True, text=True, timeout=300)


def has_h5py(python):
    return shutil.which(python) and subprocess.run([python, "-c", "import h5py"], capture_output=True).returncode == 0


def test_the_samples_are_worth_reading(arrays):
    assert {array["dtype"] for array in arrays} == set(NUMPY_TYPES)
    assert any(array["shape"] == [] for array in arrays)
    assert any(0 in array["shape"] for array in arrays)
    assert len(arrays) > 60


@pytest.mark.parametrize("mode", MODES)
def test_h5py_with_hdf5plugin_reads_every_array(samples, arrays, mode):
    assert hdf5plugin.version
    with h5py.File(samples / f"{mode}.h5", "r") as file:
        for array in arrays:
            content = file[array["name"]][()]
            assert content.dtype == HDF5_TYPES[array["dtype"]], array
            assert list(content.shape) == array["shape"], array
            assert content.tobytes() == raw(samples, array), array


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("python", [sys.executable, DEBIAN_PYTHON])
def test_h5py_with_our_plugin_reads_every_array(samples, arrays, mode, python):
    if not has_h5py(python):
        pytest.skip(f"{python} has no h5py")

    done = run_python(READ_ALL, samples, f"{mode}.h5", python=python)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == str(len(arrays))


# Without this test, the one above would prove nothing about our plugin.
@pytest.mark.parametrize("python", [sys.executable, DEBIAN_PYTHON])
def test_h5py_without_a_plugin_cannot_read_them(samples, tmp_path, python):
    if not has_h5py(python):
        pytest.skip(f"{python} has no h5py")

    done = run_python(READ_ALL, samples, "fast.h5", plugins=tmp_path, python=python)

    assert done.returncode != 0
    assert "read data" in done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_h5dump_with_our_plugin_reads_every_array(samples, arrays, mode, tmp_path):
    if not shutil.which("h5dump"):
        pytest.skip("no h5dump; Debian has it in hdf5-tools")
    for number, array in enumerate(arrays):
        if 0 in array["shape"]:
            continue
        out = tmp_path / str(number)
        command = ["h5dump", "--binary=FILE", f"--output={out}", f"--dataset=/{array['name']}", samples / f"{mode}.h5"]
        subprocess.run(command, env=environment(PLUGINS), check=True, capture_output=True, timeout=60)
        assert out.read_bytes() == raw(samples, array), array


@pytest.mark.parametrize("python", [sys.executable, DEBIAN_PYTHON])
def test_h5py_without_a_plugin_reads_what_is_not_compressed(samples, tmp_path, python):
    if not has_h5py(python):
        pytest.skip(f"{python} has no h5py")

    done = run_python(READ_ALL, samples, "none.h5", plugins=tmp_path, python=python)

    assert done.returncode == 0, done.stderr


def test_each_plugin_reads_what_the_other_wrote(tmp_path):
    content = numpy.arange(50_000, dtype=numpy.float32).reshape(100, 500)
    write = """
import sys, h5py, numpy
content = numpy.arange(50_000, dtype=numpy.float32).reshape(100, 500)
with h5py.File(sys.argv[1], "w") as file:
    for level in (-5, 1, 19):
        file.create_dataset(str(level), data=content, chunks=(30, 500), shuffle=True, compression=32015,
                            compression_opts=(level & 0xFFFFFFFF,))
    file.create_dataset("default", data=content, chunks=True, compression=32015)
"""
    read = """
import sys, h5py, numpy
with h5py.File(sys.argv[1], "r") as file:
    assert (file["x"][()] == numpy.arange(50_000, dtype=numpy.float32).reshape(100, 500)).all()
"""
    ours, theirs = tmp_path / "ours.h5", tmp_path / "theirs.h5"
    done = run_python(write, ours)
    assert done.returncode == 0, done.stderr
    with h5py.File(theirs, "w") as file:
        file.create_dataset("x", data=content, chunks=(30, 500), **hdf5plugin.Zstd(clevel=5))

    with h5py.File(ours, "r") as file:
        assert sorted(file) == ["-5", "1", "19", "default"]
        for dataset in file.values():
            assert dataset.id.get_storage_size() < content.nbytes
            assert (dataset[()] == content).all()
    done = run_python(read, theirs)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("verify", [False, True])
def test_holdfast_format_reads_every_array(samples, arrays, mode, verify):
    loaded = holdfast_format.load(samples / f"{mode}.h5", verify=verify)

    assert list(loaded) == sorted((array["name"] for array in arrays), key=str.encode)
    for array in arrays:
        content = loaded[array["name"]]
        assert content.dtype == NUMPY_TYPES[array["dtype"]], array
        assert list(content.shape) == array["shape"], array
        assert content.tobytes() == raw(samples, array), array


@pytest.mark.parametrize("mode", MODES)
def test_holdfast_format_reads_the_metadata(samples, mode):
    expected = json.loads((samples / "samples.json").read_text())

    assert holdfast_format.metadata(samples / f"{mode}.h5") == expected


# A module that is None in sys.modules cannot be imported.
def test_holdfast_format_needs_neither_hdf5plugin_nor_ml_dtypes(samples, tmp_path):
    script = """
import sys
sys.modules["hdf5plugin"] = sys.modules["ml_dtypes"] = sys.modules["xxhash"] = None
import holdfast_format
arrays = holdfast_format.load(sys.argv[1])
print(len(arrays), arrays["chunks/bf16"].dtype)
try:
    holdfast_format.load(sys.argv[1], verify=True)
except holdfast_format.FormatError as error:
    print(error)
"""
    done = run_python(script, samples / "fast.h5")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split()[1] == "uint16"
    assert "pip install xxhash" in lines[1]

    done = run_python(script, samples / "fast.h5", plugins=tmp_path)
    assert done.returncode != 0
    assert "pip install hdf5plugin" in done.stderr


def flipped(path, offset, copy):
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    copy.write_bytes(content)
    return copy


def test_holdfast_format_reports_bytes_that_are_not_those_written(samples, tmp_path):
    with h5py.File(samples / "fast.h5", "r") as file:
        offset = file["small/i32"].id.get_offset()
    changed = flipped(samples / "fast.h5", offset, tmp_path / "changed.h5")

    with pytest.raises(holdfast_format.FormatError, match="small/i32.*digest"):
        holdfast_format.load(changed, verify=True)


def test_holdfast_format_reports_a_chunk_that_is_damaged(samples, tmp_path):
    with h5py.File(samples / "fast.h5", "r") as file:
        chunk = file["chunks/f32"].id.get_chunk_info(0)
    damaged = flipped(samples / "fast.h5", chunk.byte_offset + 5000, tmp_path / "damaged.h5")

    with pytest.raises(holdfast_format.FormatError, match="chunks/f32"):
        holdfast_format.load(damaged)


# A cut of a few bytes hits only the index, which HDF5 never reads.
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("verify", [False, True])
def test_holdfast_format_reports_a_file_that_was_cut_off_or_appended_to(samples, tmp_path, mode, verify):
    content = (samples / f"{mode}.h5").read_bytes()
    changed = tmp_path / "changed.h5"
    for read in (holdfast_format.load, holdfast_format.metadata):
        for left in (len(content) - 1, len(content) - 1000, len(content) - 3000, 600, 512, 100):
            changed.write_bytes(content[:left])
            with pytest.raises(holdfast_format.FormatError, match="cut off"):
                read(changed, verify=verify)
        changed.write_bytes(content + b"x")
        with pytest.raises(holdfast_format.FormatError, match="appended"):
            read(changed, verify=verify)


# Everything that HDF5 parses is checked before.
@pytest.mark.parametrize(
    "part, offset",
    [("header", 60), ("header", 500), ("HDF5 structures", 512 + 20), ("index", -30), ("metadata", 4096)],
)
def test_holdfast_format_checks_every_part_when_it_verifies(samples, tmp_path, part, offset):
    damaged = flipped(samples / "none.h5", offset, tmp_path / "damaged.h5")

    with pytest.raises(holdfast_format.FormatError, match=f"the {part} of .* has digest"):
        holdfast_format.metadata(damaged, verify=True)


def test_holdfast_format_tells_damaged_structures_from_a_file_that_cannot_be_read(samples, tmp_path):
    damaged = flipped(samples / "none.h5", 512, tmp_path / "damaged.h5")

    with pytest.raises(holdfast_format.FormatError, match="is damaged"):
        holdfast_format.load(damaged)
    with pytest.raises(IsADirectoryError):
        holdfast_format.load(tmp_path)


def test_holdfast_format_refuses_other_files_and_versions(samples, tmp_path):
    plain = tmp_path / "plain.h5"
    with h5py.File(plain, "w") as file:
        file["x"] = [1, 2, 3]
    with pytest.raises(holdfast_format.FormatError, match="not an array file"):
        holdfast_format.load(plain)

    other = tmp_path / "other.h5"
    content = bytearray((samples / "fast.h5").read_bytes())
    for version, remedy in ((200, "newer"), (1, "any more")):
        content[8] = version
        other.write_bytes(content)
        with pytest.raises(holdfast_format.FormatError, match=f"version {version} .*{remedy}"):
            holdfast_format.metadata(other)

    with pytest.raises(FileNotFoundError):
        holdfast_format.load(tmp_path / "missing.h5")


def test_holdfast_format_can_be_installed(samples, tmp_path):
    tree, installed = tmp_path / "python", tmp_path / "installed"
    shutil.copytree(SOURCE / "python", tree, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    command = [sys.executable, "-m", "pip", "install", *options, f"--target={installed}", tree]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr

    script = "import holdfast_format, sys; print(holdfast_format.__file__, len(holdfast_format.load(sys.argv[1])))"
    done = subprocess.run([sys.executable, "-c", script, samples / "fast.h5"], capture_output=True, text=True,
                          env={**environment(PLUGINS), "PYTHONPATH": str(installed)}, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))
