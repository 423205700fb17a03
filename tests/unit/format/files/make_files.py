"""Makes the *.h5 files beside it, for foreign_files_test.cpp: docs/format.md as a stranger would implement it, and files that
carry the right digests and break one rule each.

Needs numpy, h5py, hdf5plugin and xxhash (made with 2.4.6, 3.16.0, 7.1.0 and 4.1.0). Run it without arguments.
"""

import pathlib
import struct

import h5py
import hdf5plugin
import numpy as np
import xxhash

FOLDER = pathlib.Path(__file__).parent
LEAF = 65536
ROWS = np.arange(1100, dtype="<f4")  # 4400 bytes: one chunk
WIDE = np.arange(300_000, dtype="<f4")  # two chunks, the second one with a tail


def digest(data):
    leaves = b"".join(xxhash.xxh3_128_digest(data[i : i + LEAF]) for i in range(0, len(data), LEAF))
    return xxhash.xxh3_128_digest(leaves + struct.pack("<Q", len(data)))


def sign(path):
    data = path.read_bytes()
    head = b"\x89HLD\r\n\x1a\n" + struct.pack("<IIQ", 1, 0, len(data)) + digest(data[512:])
    head = head.ljust(496, b"\0")
    path.write_bytes(head + digest(head) + data[512:])


def fixed_text(text):
    return np.bytes_(text)


def add_digest(dataset, array):
    dataset.attrs["digest"] = fixed_text(digest(np.ascontiguousarray(array).tobytes()).hex())


def add_compact(file, name, array, dtype_name=None):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.COMPACT)
    creation.set_obj_track_times(False)
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    kind = h5py.h5t.py_create(array.dtype)
    space = h5py.h5s.create_simple(array.shape) if array.shape else h5py.h5s.create(h5py.h5s.SCALAR)
    dataset = h5py.Dataset(h5py.h5d.create(file.id, name.encode(), kind, space, creation, links))
    dataset[...] = array
    add_digest(dataset, array)
    if dtype_name:
        dataset.attrs["dtype"] = fixed_text(dtype_name)
    return dataset


def add_chunked(file, name, array, chunk=None):
    dataset = file.create_dataset(
        name, data=array, chunks=chunk or (min(len(array), 262_144),), shuffle=True, **hdf5plugin.Zstd(clevel=1)
    )
    add_digest(dataset, array)
    return dataset


def empty_chunked(file, name, shape, chunk):
    dataset = file.create_dataset(name, shape=shape, dtype="<f4", chunks=chunk, shuffle=True, **hdf5plugin.Zstd(clevel=1))
    dataset.attrs["digest"] = fixed_text("0" * 32)
    return dataset


def valid(file):
    add_compact(file, "scalar", np.array(7, "<i8"))
    add_compact(file, "model/half", np.array([1, 2, 3], "<f2"))
    add_compact(file, "model/brain", np.array([[0x3F80, 0x4000]], "<u2"), "bf16")
    add_compact(file, "model/flags", np.array([1, 0, 1], "u1"), "boolean")
    add_chunked(file, "model/rows", ROWS)
    add_chunked(file, "model/wide", WIDE)


def with_chunk(data, mask=0):
    """A dataset of one chunk of 4400 bytes that holds `data` instead of its frame."""

    def fill(file):
        empty_chunked(file, "a", (1100,), (1100,)).id.write_direct_chunk((0,), data, mask)

    return fill


def frame_of(data):
    """The frame that the plugin makes of `data`."""
    with h5py.File("frame", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("a", data=np.frombuffer(data, "u1"), chunks=(len(data),), **hdf5plugin.Zstd(clevel=1))
        return dataset.id.read_direct_chunk((0,))[1]


def external(file):
    dataset = file.create_dataset("a", shape=(64,), dtype="u1", external=[("/etc/passwd", 0, 64)])
    dataset.attrs["digest"] = fixed_text("0" * 32)


def virtual(file):
    layout = h5py.VirtualLayout(shape=(64,), dtype="u1")
    layout[:] = h5py.VirtualSource("other.h5", "a", shape=(64,))
    file.create_virtual_dataset("a", layout).attrs["digest"] = fixed_text("0" * 32)


def cycle(file):
    inner = file.create_group("a/b")
    inner["c"] = file["a"]


def second_name(file):
    file["b"] = add_compact(file, "a", np.zeros(2, "<f4"))


def named_type(file):
    file["type"] = np.dtype("<f4")


def unallocated(file):
    file.create_dataset("a", shape=(2**40,), dtype="<f4").attrs["digest"] = fixed_text("0" * 32)


def without_digest(file):
    del add_compact(file, "a", np.zeros(2, "<f4")).attrs["digest"]


def digest_as(value):
    def fill(file):
        add_compact(file, "a", np.zeros(2, "<f4")).attrs["digest"] = value

    return fill


def wrong_type(dtype):
    return lambda file: add_compact(file, "a", np.zeros(2, dtype))


def unknown_filter(file):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk((1100,))
    creation.set_filter(32999, h5py.h5z.FLAG_OPTIONAL, ())
    space = h5py.h5s.create_simple((1100,))
    dataset = h5py.Dataset(h5py.h5d.create(file.id, b"a", h5py.h5t.IEEE_F32LE, space, creation))
    dataset.id.write_direct_chunk((0,), ROWS.tobytes())
    add_digest(dataset, ROWS)


def plain_chunks(file):
    add_digest(file.create_dataset("a", data=ROWS, chunks=(1100,)), ROWS)


def gzip_chunks(file):
    add_digest(file.create_dataset("a", data=ROWS, chunks=(1100,), shuffle=True, compression="gzip"), ROWS)


def contiguous(file):
    add_digest(file.create_dataset("a", data=ROWS), ROWS)


def missing_chunk(file):
    dataset = empty_chunked(file, "a", WIDE.shape, (262_144,))
    dataset[:262_144] = WIDE[:262_144]


def null_space(file):
    file["a"] = h5py.Empty("<f4")
    file["a"].attrs["digest"] = fixed_text("0" * 32)


HOSTILE = {
    "shape_without_chunks": lambda file: empty_chunked(file, "a", (2**40,), (262_144,)),
    "shape_beyond_64_bits": lambda file: empty_chunked(file, "a", (2**40, 2**40), (1, 262_144)),
    "shape_never_written": unallocated,
    "external_storage": external,
    "virtual_dataset": virtual,
    "soft_link": lambda file: file.__setitem__("a", h5py.SoftLink("/metadata")),
    "external_link": lambda file: file.__setitem__("a", h5py.ExternalLink("/etc/passwd", "/a")),
    "cycle_of_groups": cycle,
    "second_name": second_name,
    "named_type": named_type,
    "deep_groups": lambda file: file.create_group("/".join(["g"] * 40)),
    "long_name": lambda file: file.create_group("n" * 1025),
    "no_digest": without_digest,
    "digest_of_variable_length": digest_as("0" * 32),
    "digest_of_wrong_length": digest_as(fixed_text("0" * 31)),
    "digest_without_digits": digest_as(fixed_text("x" * 32)),
    "digest_as_list": digest_as(np.array([fixed_text("0" * 32)])),
    "digest_too_long": digest_as(fixed_text("0" * 1000)),
    "digest_of_other_bytes": digest_as(fixed_text("0" * 32)),
    "big_endian": wrong_type(">f4"),
    "compound": wrong_type(np.dtype([("x", "<f4"), ("y", "<f4")])),
    "enumeration": wrong_type("bool"),
    "dtype_of_other_width": lambda file: add_compact(file, "a", np.zeros(2, "<f4"), "bf16"),
    "dtype_unknown": lambda file: add_compact(file, "a", np.zeros(2, "<u2"), "f8e4"),
    "dtype_superfluous": lambda file: add_compact(file, "a", np.zeros(2, "<u2"), "u16"),
    "unknown_filter": unknown_filter,
    "no_filter": plain_chunks,
    "gzip_filter": gzip_chunks,
    "large_and_contiguous": contiguous,
    "other_chunk_shape": lambda file: add_chunked(file, "a", ROWS, (1000,)),
    "missing_chunk": missing_chunk,
    "chunk_not_encoded": with_chunk(ROWS.tobytes(), mask=3),
    "chunk_shorter_than_its_shape": with_chunk(b"\x01", mask=3),
    "chunk_of_garbage": with_chunk(b"\xa5" * 400),
    "frame_of_fewer_bytes": with_chunk(frame_of(b"\x07" * 4396)),
    "frame_of_more_bytes": with_chunk(frame_of(b"\x07" * 4404)),
    "frame_cut_off": with_chunk(frame_of(ROWS.tobytes())[:-5]),
    "frame_with_a_tail": with_chunk(frame_of(b"\x07" * 4400) + b"\x00"),
    "frame_that_claims_terabytes": with_chunk(bytes.fromhex("28b52ffde00000000000200000010000") + b"\0" * 40),
    "null_space": null_space,
}


def metadata(value):
    def fill(file):
        del file["metadata"]
        if value is not None:
            file["metadata"] = value

    return fill


HOSTILE |= {
    "no_metadata": metadata(None),
    "metadata_of_variable_length": metadata("{}"),
    "metadata_as_number": metadata(np.array(7, "<i4")),
    "metadata_as_list": metadata(np.array([fixed_text("{}")])),
    "metadata_never_written": lambda file: (file.__delitem__("metadata"), file.create_dataset("metadata", shape=(), dtype="S2")),
    "metadata_as_group": lambda file: (file.__delitem__("metadata"), file.create_group("metadata")),
}


def make(name, fill):
    path = FOLDER / f"{name}.h5"
    with h5py.File(path, "w", libver=("v108", "v110"), userblock_size=512) as file:
        file["metadata"] = fixed_text('{"step": 7}')
        fill(file)
    sign(path)


if __name__ == "__main__":
    make("by_a_stranger", valid)
    for name, fill in HOSTILE.items():
        make(name, fill)
