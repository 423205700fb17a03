"""Reads the array files (savepoints) of Holdfast, as docs/format.md specifies them, with numpy and h5py.

    import holdfast_format
    arrays = holdfast_format.load("step-1000.h5")         # {"model/dense/kernel": array(...), ...}
    step = holdfast_format.metadata("step-1000.h5")["step"]

Compressed arrays need HDF5's filter 32015 (zstd): install hdf5plugin, or let HDF5_PLUGIN_PATH name the folder of
Holdfast's plugin. bfloat16 arrays are of ml_dtypes.bfloat16 where ml_dtypes is installed; otherwise they are uint16,
each number the upper half of a float32.

Magic, version and length are always checked before HDF5 sees the file. With verify=True, all its digests are: of
header, index and HDF5's structures first, then of each array. That needs the package xxhash.

Only reads. HDF5's library parses the file: do not open files of people whose programs you would not run.
"""

import contextlib
import json
import os
import struct

import h5py
import numpy

__all__ = ["FormatError", "load", "metadata"]

_MAGIC = b"\x89HLD\r\n\x1a\n"
_VERSION = 2
_HEADER_BYTES = 512
_SIGNED_BYTES = 496  # of the header: the digest of these stands behind them
_PIECES_BEGIN = 4096
_METADATA = "metadata"
_ZSTD = 32015
_LEAF_BYTES = 65536
_ANOTHER = "use another savepoint or a copy of this one"


class FormatError(Exception):
    """The file is damaged, no array file, of another version, or needs something that is not installed."""


def load(path, verify=False):
    """Returns all arrays of the file, by name, sorted by name.

    With verify=True, every digest of the file is checked, which needs the package xxhash; without it, what is damaged
    but not cut off may go unnoticed. Raises FormatError, and OSError where the file cannot be read.
    """
    xxhash = _import_xxhash() if verify else None
    with _open(path, xxhash) as (file, _):
        arrays = {}
        for name, dataset in _datasets(path, file):
            stored = _read(path, name, dataset)
            if xxhash is not None:
                _check_digest(path, name, dataset, stored, xxhash)
            arrays[name] = _as_declared(path, name, dataset, stored)
        return arrays


def metadata(path, verify=False):
    """Returns what the file's writer said of it: in a savepoint a dict with the step, the seed, the model and more.

    verify and what is raised: as of load().
    """
    xxhash = _import_xxhash() if verify else None
    with _open(path, xxhash) as (file, index):
        text = file.get(_METADATA)
        if not isinstance(text, h5py.Dataset) or text.shape != ():
            raise FormatError(f"{path} has no metadata; {_ANOTHER}")
        stored = text[()]
        if xxhash is not None:
            _require_digest(path, "metadata", _metadata_digest(index), [stored], xxhash)
        return json.loads(stored)


@contextlib.contextmanager
def _open(path, xxhash):
    """The file and its index, once they were checked, and what HDF5 or a parser says of it later as damage.

    No index where there is no xxhash to check it.
    """
    with open(path, "rb") as file:
        index = _check_frame(path, file, xxhash)
    try:
        with h5py.File(path, "r") as file:
            yield file, index
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        # What the system refuses has a number: a lock, a permission, a disk.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(f"{path} is damaged: {error}; {_ANOTHER}") from error


def _check_frame(path, file, xxhash):
    """What docs/format.md demands before anything is parsed, in its order; digests where there is xxhash."""
    header = file.read(_HEADER_BYTES)
    if header[: len(_MAGIC)] != _MAGIC:
        raise FormatError(f"{path} is no array file of Holdfast; it begins with {header[:8]!r}")
    if len(header) < _HEADER_BYTES:
        raise FormatError(f"{path} was cut off within its first {_HEADER_BYTES} bytes; {_ANOTHER}")
    if xxhash is not None:
        _require_digest(path, "header", header[_SIGNED_BYTES:], [header[:_SIGNED_BYTES]], xxhash)
    version, _, file_bytes, index_offset, index_bytes = struct.unpack_from("<IIQQQ", header, len(_MAGIC))
    if version != _VERSION:
        remedy = "install a newer holdfast-format" if version > _VERSION else "no Holdfast reads it any more"
        raise FormatError(f"{path} has version {version} of the format; {remedy}")
    actual_bytes = os.fstat(file.fileno()).st_size
    if actual_bytes != file_bytes:
        change = "cut off" if actual_bytes < file_bytes else "appended to"
        raise FormatError(f"{path} has {actual_bytes} bytes and was {change}: its header says {file_bytes}; {_ANOTHER}")
    return None if xxhash is None else _check_index(path, file, header[40:56], index_offset, index_bytes, xxhash)


def _check_index(path, file, digest, offset, length, xxhash):
    """The index, and with it the structures that HDF5 is to parse."""
    index = _read_range(path, file, offset, length)
    _require_digest(path, "index", digest, [index], xxhash)
    if length < 40:
        raise FormatError(f"{path} has an index of {length} bytes; {_ANOTHER}")
    structures_offset, structures_bytes = struct.unpack_from("<QQ", index, 8)
    structures = [
        _read_range(path, file, _HEADER_BYTES, _PIECES_BEGIN - _HEADER_BYTES),
        _read_range(path, file, structures_offset, structures_bytes),
    ]
    _require_digest(path, "HDF5 structures", index[24:40], structures, xxhash)
    return index


def _metadata_digest(index):
    """Of the first record, behind its name, four bytes, the one extent and the offset."""
    (name_bytes,) = struct.unpack_from("<H", index, 40)
    start = 42 + name_bytes + 4 + 8 + 8
    return index[start : start + 16]


def _read_range(path, file, offset, length):
    # Never more memory than the file has bytes, whatever a damaged number says.
    if offset + length > os.fstat(file.fileno()).st_size:
        raise FormatError(f"{path} says that it has {length} bytes at offset {offset}, which are not there; {_ANOTHER}")
    file.seek(offset)
    return file.read(length)


def _require_digest(path, part, expected, pieces, xxhash):
    actual = _digest(b"".join(pieces), xxhash)
    if actual != expected.hex():
        raise FormatError(f"the {part} of {path} has digest {actual} where {expected.hex()} is expected; {_ANOTHER}")


def _datasets(path, file):
    """All arrays, sorted by name as bytes."""
    found = []

    def visit(name, thing):
        if isinstance(thing, h5py.Dataset) and name != _METADATA:
            found.append((name, thing))

    # Follows hard links only.
    file.visititems(visit)
    for name, dataset in found:
        if dataset.is_virtual or dataset.external:
            raise FormatError(f'array "{name}" of {path} does not lie in the file; only Holdfast\'s own files are read')
    return sorted(found, key=lambda item: item[0].encode())


def _read(path, name, dataset):
    if _uses_zstd(dataset):
        _require_zstd(path, name)
    try:
        return dataset[()]
    except OSError as error:
        raise FormatError(f'array "{name}" of {path} cannot be read: {error}; use another savepoint') from error


def _uses_zstd(dataset):
    creation = dataset.id.get_create_plist()
    return any(creation.get_filter(i)[0] == _ZSTD for i in range(creation.get_nfilters()))


def _require_zstd(path, name):
    try:
        import hdf5plugin  # noqa: F401  (registers its filters when it is imported)
    except ImportError:
        pass
    if not h5py.h5z.filter_avail(_ZSTD):
        raise FormatError(
            f'array "{name}" of {path} is compressed with zstd; "pip install hdf5plugin", or let HDF5_PLUGIN_PATH name '
            "the folder holdfast/hdf5-plugins of an installed Holdfast before Python starts"
        )


def _as_declared(path, name, dataset, stored):
    """Types that HDF5 lacks are stored as another one, and an attribute names them."""
    declared = _text(dataset.attrs.get("dtype", ""))
    if declared == "":
        return numpy.asarray(stored)
    if declared == "boolean":
        return numpy.asarray(stored).astype(numpy.bool_)
    if declared == "bf16":
        return _as_bfloat16(numpy.asarray(stored))
    raise FormatError(f'array "{name}" of {path} has elements of type {declared}; install a newer holdfast-format')


def _as_bfloat16(stored):
    try:
        import ml_dtypes
    except ImportError:
        return stored
    return stored.view(ml_dtypes.bfloat16)


def _text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def _import_xxhash():
    try:
        import xxhash
    except ImportError as error:
        raise FormatError('verifying needs the package xxhash; "pip install xxhash", or load without') from error
    return xxhash


def _check_digest(path, name, dataset, stored, xxhash):
    expected = _text(dataset.attrs.get("digest", ""))
    actual = _digest(numpy.ascontiguousarray(stored).tobytes(), xxhash)
    if actual != expected:
        raise FormatError(
            f'array "{name}" of {path} has digest {actual} where the file says {expected or "none"}; {_ANOTHER}'
        )


def _digest(data, xxhash):
    """A tree of XXH3-128 over leaves of 64 KiB; docs/format.md."""
    view = memoryview(data)
    root = xxhash.xxh3_128()
    for first in range(0, len(view), _LEAF_BYTES):
        root.update(xxhash.xxh3_128(view[first : first + _LEAF_BYTES]).digest())
    root.update(struct.pack("<Q", len(view)))
    return root.hexdigest()
