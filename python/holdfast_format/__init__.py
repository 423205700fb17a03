"""Reads the array files (savepoints) of Holdfast, as docs/format.md specifies them, with numpy and h5py.

    import holdfast_format
    arrays = holdfast_format.load("step-1000.h5")         # {"model/dense/kernel": array(...), ...}
    step = holdfast_format.metadata("step-1000.h5")["step"]

Compressed arrays need HDF5's filter 32015 (zstd): install hdf5plugin, or set HDF5_PLUGIN_PATH to the folder of
Holdfast's plugin. bfloat16 arrays have the type ml_dtypes.bfloat16 if ml_dtypes is installed. Otherwise they are
uint16, and each number is the upper half of a float32.

Magic, version and length are always checked before HDF5 sees the file. verify=True also checks all digests: first those
of the header, the index and HDF5's structures, then that of each array. This needs the package xxhash.

The package only reads. HDF5's library parses the file, so do not open files of people whose programs you would not run.
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
_SIGNED_BYTES = 496  # first bytes of the header; their digest follows them
_PIECES_BEGIN = 4096
_METADATA = "metadata"
_ZSTD = 32015
_LEAF_BYTES = 65536
_ANOTHER = "use another savepoint or a copy of this one"


class FormatError(Exception):
    """The file is damaged, is not an array file, has another version, or needs something that is not installed."""


def load(path, verify=False):
    """Returns a dict of all arrays of the file, sorted by name.

    verify=True checks every digest of the file and needs the package xxhash. Otherwise damage may go unnoticed, unless
    the file was cut off. Raises FormatError, and OSError if the file cannot be read.
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
    """Returns the metadata of the file's writer: in a savepoint a dict with the step, the seed, the model and more.

    verify and exceptions: as in load().
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
    """Yields the checked file and its index (None without xxhash).

    Exceptions of HDF5 and of parsers within the block become a FormatError that says that the file is damaged.
    """
    with open(path, "rb") as file:
        index = _check_frame(path, file, xxhash)
    try:
        with h5py.File(path, "r") as file:
            yield file, index
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        # Errors of the system (a lock, a permission, a disk) have a number and say nothing about the content.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(f"{path} is damaged (its parser says: {error}); {_ANOTHER}") from error


def _check_frame(path, file, xxhash):
    """Makes the checks that docs/format.md demands before anything is parsed; digests only with xxhash."""
    header = file.read(_HEADER_BYTES)
    if header[: len(_MAGIC)] != _MAGIC:
        raise FormatError(f"{path} is not an array file of Holdfast: it begins with {header[:8]!r}; check the path")
    if len(header) < _HEADER_BYTES:
        raise FormatError(f"{path} was cut off within its first {_HEADER_BYTES} bytes; {_ANOTHER}")
    if xxhash is not None:
        _require_digest(path, "header", header[_SIGNED_BYTES:], [header[:_SIGNED_BYTES]], xxhash)
    version, _, file_bytes, index_offset, index_bytes = struct.unpack_from("<IIQQQ", header, len(_MAGIC))
    if version != _VERSION:
        remedy = "install a newer holdfast-format" if version > _VERSION else "no Holdfast reads this version any more"
        raise FormatError(f"{path} has version {version} of the format; {remedy}")
    actual_bytes = os.fstat(file.fileno()).st_size
    if actual_bytes != file_bytes:
        change = "cut off" if actual_bytes < file_bytes else "appended to"
        raise FormatError(f"{path} has {actual_bytes} bytes and was {change}: its header says {file_bytes}; {_ANOTHER}")
    return None if xxhash is None else _check_index(path, file, header[40:56], index_offset, index_bytes, xxhash)


def _check_index(path, file, digest, offset, length, xxhash):
    """Reads the index, and checks it and the structures that HDF5 will parse."""
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
    """The digest in the first record: it follows the name, four bytes, the single extent and the offset."""
    (name_bytes,) = struct.unpack_from("<H", index, 40)
    start = 42 + name_bytes + 4 + 8 + 8
    return index[start : start + 16]


def _read_range(path, file, offset, length):
    # A damaged number must not make this take more memory than the file has bytes.
    if offset + length > os.fstat(file.fileno()).st_size:
        raise FormatError(f"{path} claims {length} bytes at offset {offset}, but it ends before them; {_ANOTHER}")
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

    # visititems follows hard links only.
    file.visititems(visit)
    for name, dataset in found:
        if dataset.is_virtual or dataset.external:
            raise FormatError(f'array "{name}" of {path} is stored outside the file; use a file that Holdfast wrote')
    return sorted(found, key=lambda item: item[0].encode())


def _read(path, name, dataset):
    if _uses_zstd(dataset):
        _require_zstd(path, name)
    try:
        return dataset[()]
    except OSError as error:
        raise FormatError(f'array "{name}" of {path} cannot be read (HDF5 says: {error}); {_ANOTHER}') from error


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
            f'array "{name}" of {path} is compressed with zstd; run "pip install hdf5plugin", or set HDF5_PLUGIN_PATH '
            "to the folder holdfast/hdf5-plugins of an installed Holdfast before Python starts"
        )


def _as_declared(path, name, dataset, stored):
    """Converts types that HDF5 lacks: they are stored as another type, and an attribute names the real one."""
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
        raise FormatError('verify=True needs xxhash; run "pip install xxhash", or use verify=False') from error
    return xxhash


def _check_digest(path, name, dataset, stored, xxhash):
    expected = _text(dataset.attrs.get("digest", ""))
    actual = _digest(numpy.ascontiguousarray(stored).tobytes(), xxhash)
    if actual != expected:
        raise FormatError(
            f'array "{name}" of {path} has digest {actual} where the file says {expected or "none"}; {_ANOTHER}'
        )


def _digest(data, xxhash):
    """XXH3-128 over a tree of 64 KiB leaves, as docs/format.md specifies."""
    view = memoryview(data)
    root = xxhash.xxh3_128()
    for first in range(0, len(view), _LEAF_BYTES):
        root.update(xxhash.xxh3_128(view[first : first + _LEAF_BYTES]).digest())
    root.update(struct.pack("<Q", len(view)))
    return root.hexdigest()
