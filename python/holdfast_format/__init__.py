"""Reads the array files (savepoints) of Holdfast, as docs/format.md specifies them, with numpy and h5py.

    import holdfast_format
    arrays = holdfast_format.load("step-1000.h5")         # {"model/dense/kernel": array(...), ...}
    step = holdfast_format.metadata("step-1000.h5")["step"]

Compressed arrays need HDF5's filter 32015 (zstd): install hdf5plugin, or let HDF5_PLUGIN_PATH name the folder of
Holdfast's plugin. bfloat16 arrays are of ml_dtypes.bfloat16 where ml_dtypes is installed; otherwise they are uint16,
each number the upper half of a float32.

Only reads. HDF5's library parses the file: do not open files of people whose programs you would not run.
"""

import json
import struct

import h5py
import numpy

__all__ = ["FormatError", "load", "metadata"]

_MAGIC = b"\x89HLD\r\n\x1a\n"
_VERSIONS = (1, 2)
_METADATA = "metadata"
_ZSTD = 32015
_LEAF_BYTES = 65536


class FormatError(Exception):
    """The file is damaged, no array file, of another version, or needs something that is not installed."""


def load(path, verify=False):
    """Returns all arrays of the file, by name, sorted by name.

    With verify=True, the bytes of every array are compared with the digest that the file has of them, which needs the
    package xxhash. Raises FormatError, and OSError where the file cannot be read.
    """
    xxhash = _import_xxhash() if verify else None
    with _open(path) as file:
        arrays = {}
        for name, dataset in _datasets(path, file):
            stored = _read(path, name, dataset)
            if xxhash is not None:
                _check_digest(path, name, dataset, stored, xxhash)
            arrays[name] = _as_declared(path, name, dataset, stored)
        return arrays


def metadata(path):
    """Returns what the file's writer said of it: in a savepoint a dict with the step, the seed, the model and more."""
    with _open(path) as file:
        text = file.get(_METADATA)
        if not isinstance(text, h5py.Dataset) or text.shape != ():
            raise FormatError(f"{path} has no metadata; use another savepoint or a copy of this one")
        return json.loads(text[()])


def _open(path):
    with open(path, "rb") as file:
        start = file.read(12)
    if len(start) < 12 or start[:8] != _MAGIC:
        raise FormatError(f"{path} is no array file of Holdfast; it begins with {start[:8]!r}")
    (version,) = struct.unpack("<I", start[8:])
    if version not in _VERSIONS:
        raise FormatError(f"{path} has version {version} of the format; install a newer holdfast-format")
    return h5py.File(path, "r")


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
            f'array "{name}" of {path} has digest {actual} where the file says {expected or "none"}; '
            "use another savepoint or a copy of this one"
        )


def _digest(data, xxhash):
    """A tree of XXH3-128 over leaves of 64 KiB; docs/format.md."""
    view = memoryview(data)
    root = xxhash.xxh3_128()
    for first in range(0, len(view), _LEAF_BYTES):
        root.update(xxhash.xxh3_128(view[first : first + _LEAF_BYTES]).digest())
    root.update(struct.pack("<Q", len(view)))
    return root.hexdigest()
