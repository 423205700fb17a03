"""Makes the *.h5 files next to it for the tests of foreign HDF5 files: good ones of h5py with every supported feature, and many that each
use one feature that a foreign file may not use.

Needs numpy, h5py and hdf5plugin (made with 2.4.6, 3.16.0 and 7.1.0). Run it without arguments.
"""

import pathlib
import zlib

import h5py
import hdf5plugin
import numpy as np

FOLDER = pathlib.Path(__file__).parent
NUMBERS = np.arange(3000)
FEW = np.arange(10)
UNKNOWN_FILTER = 32999
THIRTY_TWO_TERABYTES = (2**42,)  # of doubles


def create(file, name, kind, shape, prepare=None, creation=None):
    """Creates a dataset through the low-level interface, without elements."""
    creation = creation or h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if prepare:
        prepare(creation)
    space = h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)
    return h5py.Dataset(h5py.h5d.create(file.id, name.encode(), kind, space, creation))


def bfloat16_float():
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    return kind


def fixed_string(length, padding):
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(length)
    kind.set_strpad(padding)
    return kind


def add_fixed_strings(file, name, padding, values):
    kind = fixed_string(8, padding)
    attribute = h5py.h5a.create(file.id, name.encode(), kind, h5py.h5s.create_simple((len(values),)))
    attribute.write(np.array(values, dtype="S8"), mtype=kind)


def add_kinds(file):
    for name in ("f8", "f4", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        for order, prefix in (("little", "<"), ("big", ">")):
            file.create_dataset(f"{order}/{name}", data=np.arange(-3 if name[0] != "u" else 0, 9).astype(prefix + name))
    file.create_dataset("bool", data=np.array([[True, False, True]]))
    opaque = h5py.h5t.create(h5py.h5t.OPAQUE, 2)
    keras = create(file, "bfloat16_of_keras", opaque, (3,))
    keras.id.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([0x3F80, 0x4000, 0xC000], "<u2").view("V2"), opaque)
    keras.attrs["dtype"] = "bfloat16"
    newer = create(file, "bfloat16_of_hdf5", bfloat16_float(), (3,))
    newer.id.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([0x3F80, 0x4000, 0xC000], "<u2").view("V2"), bfloat16_float())
    file.create_dataset("scalar", data=np.float32(1.5))
    file.create_dataset("nothing", shape=(0, 3), dtype="f4")
    file.create_dataset("never_written", shape=(4,), dtype="f4", fillvalue=2.5)
    compact = create(file, "compact", h5py.h5t.STD_I32LE, (3,), lambda creation: creation.set_layout(h5py.h5d.COMPACT))
    compact[...] = [1, 2, 3]


def add_storages(file):
    options = {
        "contiguous": {},
        "chunked": {"chunks": (700,)},
        "resizable": {"chunks": (4096,), "maxshape": (None,)},
        "gzip": {"chunks": (700,), "compression": "gzip"},
        "shuffled": {"chunks": (700,), "compression": "gzip", "shuffle": True},
        "fletcher32": {"chunks": (700,), "fletcher32": True, "shuffle": True},
        "zstd": {"chunks": (700,), "shuffle": True, **hdf5plugin.Zstd(clevel=3)},
    }
    for name, option in options.items():
        file.create_dataset("stored/" + name, data=NUMBERS.astype("<f4"), **option)
    sparse = file.create_dataset("stored/sparse", shape=(10, 10), dtype=">f4", chunks=(3, 3), fillvalue=-1)
    sparse[4:8, 4:5] = 1
    # Chunks that cut both axes, with tails along both.
    file.create_dataset("stored/blocks", data=NUMBERS.astype("<i4").reshape(60, 50), chunks=(7, 8), compression="gzip")


def add_attributes(file):
    attributes = file.create_group("attributes").attrs
    attributes["text"] = "größe"
    attributes["no_text"] = ""
    attributes["texts"] = ["a", "", "größe"]
    attributes["no_texts"] = np.array([], dtype="f8")  # as Keras writes an empty list of names
    attributes["fixed_text"] = np.bytes_("abc")
    attributes["number"] = 7
    attributes["big_endian"] = np.array([1, 2, 3], ">i2")
    attributes["truth"] = np.array([True, False])
    attributes["empty"] = h5py.Empty("f4")
    attributes["empty_text"] = h5py.Empty("S1")
    add_fixed_strings(file["attributes"], "null_terminated", h5py.h5t.STR_NULLTERM, [b"a", b"bcd"])
    add_fixed_strings(file["attributes"], "null_padded", h5py.h5t.STR_NULLPAD, [b"a", b"bcdefghi"])
    add_fixed_strings(file["attributes"], "space_padded", h5py.h5t.STR_SPACEPAD, [b"a       ", b"b c     "])
    for i in range(20):  # more than fit an object header: dense storage in newer files
        file["attributes"].attrs[f"one_of_many_{i:02}"] = i


def texts(file):
    file["variable"] = "größe"
    file["variable"].attrs["unit"] = "m"
    file["inner/empty"] = ""
    file["inner/long"] = "0123456789" * 1000
    file["ascii"] = np.bytes_("abc")
    file.create_dataset("variable_ascii", data="abc", dtype=h5py.string_dtype("ascii"))
    file.create_dataset("fixed", data="größe".encode(), dtype=h5py.string_dtype("utf-8", 10))
    for name, padding in (("null_terminated", h5py.h5t.STR_NULLTERM), ("space_padded", h5py.h5t.STR_SPACEPAD)):
        kind = fixed_string(8, padding)
        value = np.array(b"b c     " if name == "space_padded" else b"bcd", "S8")
        create(file, name, kind, ()).id.write(h5py.h5s.ALL, h5py.h5s.ALL, value, kind)
    create(file, "never_written", fixed_string(8, h5py.h5t.STR_NULLPAD), ())
    file["number"] = 7


def all_kinds(file):
    add_kinds(file)
    add_storages(file)
    add_attributes(file)
    many = file.create_group("many")
    for i in range(60):
        many.create_group(f"group_{i:02}")


def soft_link(file):
    file["a"] = FEW
    file["b"] = h5py.SoftLink("/a")


def external_link(file):
    file["a"] = h5py.ExternalLink("/etc/passwd", "/a")


def virtual(file):
    layout = h5py.VirtualLayout(shape=(3000,), dtype="f4")
    layout[:] = h5py.VirtualSource("/etc/passwd", "a", shape=(3000,))
    file.create_virtual_dataset("a", layout)


def external_storage(file):
    file.create_dataset("a", shape=(10,), dtype="f4", external=[("/etc/passwd", 0, 40)])


def unknown_filter(file):
    def prepare(creation):
        creation.set_chunk((10,))
        creation.set_filter(UNKNOWN_FILTER, h5py.h5z.FLAG_OPTIONAL, ())

    create(file, "a", h5py.h5t.IEEE_F32LE, (10,), prepare).id.write_direct_chunk((0,), bytes(40))


def lzf_filter(file):
    file.create_dataset("a", data=FEW, compression="lzf")


def declared_terabytes(file):
    file.create_dataset("a", shape=THIRTY_TWO_TERABYTES, dtype="f8", chunks=(1024,), compression="gzip")


def contiguous_terabytes(file):
    file.create_dataset("a", shape=THIRTY_TWO_TERABYTES, dtype="f8")


def many_declared_gigabytes(file):
    for i in range(10):
        file.create_dataset(f"a{i}", shape=(2**29,), dtype="f8", chunks=(1024,))


def beyond_64_bits(file):
    file.create_dataset("a", shape=(2**40, 2**40), dtype="f8", chunks=(1, 1024))


def deep_groups(file):
    file.create_group("/".join("d" * 130))


def cycle(file):
    inner = file.create_group("a/b")
    inner["c"] = file["a"]


def cycle_to_root(file):
    file["a"] = file["/"]


def second_name(file):
    file["a"] = FEW
    file["b"] = file["a"]


def named_type(file):
    file["a"] = np.dtype("f4")


def compound(file):
    file["a"] = np.zeros(3, [("x", "f4"), ("y", "i4")])


def strings(file):
    file["a"] = ["one", "two"]


def opaque(file):
    file["a"] = np.zeros(3, "V2")


def enumeration(file):
    file.create_dataset("a", data=[0, 1], dtype=h5py.enum_dtype({"red": 0, "green": 1}, basetype="i1"))


def untrue(file):
    file["a"] = np.array([True, False])
    file["a"].id.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([1, 2], "i1"), file["a"].id.get_type())


def no_shape(file):
    file["a"] = h5py.Empty("f4")


def long_double(file):
    file["a"] = np.zeros(3, np.longdouble)


def dimension_scale(file):
    file["a"] = FEW
    file["x"] = FEW
    file["x"].make_scale("x")
    file["a"].dims[0].attach_scale(file["x"])


def reference_attribute(file):
    file["a"] = FEW
    file.attrs["a"] = file["a"].ref


def latin_string(file):
    file["a"] = np.bytes_("größe".encode("latin-1"))


def wide_string(file):
    create(file, "a", fixed_string(2**31, h5py.h5t.STR_NULLPAD), ())


def no_string(file):
    file["a"] = h5py.Empty("S1")


def table_of_strings(file):
    file.attrs.create("a", [["b", "c"], ["d", "e"]], dtype=h5py.string_dtype())


def latin_text(file):
    file.attrs["a"] = np.bytes_("größe".encode("latin-1"))


def name_with_dots(file):
    file["a/.."] = FEW


def compressed_twice(file):
    def prepare(creation):
        creation.set_chunk((10,))
        creation.set_deflate(1)
        creation.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (1,))

    create(file, "a", h5py.h5t.IEEE_F32LE, (10,), prepare).id.write_direct_chunk((0,), bytes(40))


def fletcher32_of_other_bytes(file):
    file.create_dataset("a", data=np.arange(10, dtype="<f4"), chunks=(10,), fletcher32=True)
    file["a"].id.write_direct_chunk((0,), np.arange(1, 12, dtype="<f4").tobytes())


def chunks_of_one_element(file):
    file.create_dataset("a", shape=(2**29,), maxshape=(None,), dtype="f8", chunks=(1,))[0] = 1


def deflate_of_fewer_bytes(file):
    file.create_dataset("a", shape=(10,), dtype="<f4", chunks=(10,), compression="gzip")
    file["a"].id.write_direct_chunk((0,), zlib.compress(bytes(20)))


def chunk_of_a_million(file):
    file.create_dataset("zeros", data=np.zeros((1, 1_000_000), "u1"), chunks=(1, 1_000_000), compression="gzip")


def zstd_frame(frame):
    def prepare(creation):
        creation.set_chunk((700,))
        creation.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (1,))

    def make(file):
        create(file, "a", h5py.h5t.IEEE_F32LE, (700,), prepare).id.write_direct_chunk((0,), frame)

    return make


# A frame made by hand: magic, one byte of description, content size, one RLE block.
def rle_frame(content_bytes, size_field=None):
    size = (size_field if size_field is not None else content_bytes).to_bytes(8, "little")
    block = (content_bytes << 3 | 1 << 1 | 1).to_bytes(3, "little")
    return b"\x28\xB5\x2F\xFD" + bytes([0b11100000]) + size + block + b"\0"


def mixed_content(file):
    """Arrays that are read, next to one of each kind that is not."""
    file["train/x"] = np.arange(6, dtype="<f4").reshape(3, 2)
    file["y"] = np.array([7, 8, 9], "<i4")
    file["y"].attrs["units"] = np.array([(1, 2.0)], dtype=[("a", "<i4"), ("b", "<f8")])
    file["records"] = np.array([(1, 2.0)], dtype=[("a", "<i4"), ("b", "<f8")])
    file["words"] = ["some", "words"]
    file["alias"] = file["y"]
    file["elsewhere"] = h5py.SoftLink("/y")
    file["far_away"] = h5py.ExternalLink("other.h5", "/y")
    file.create_dataset("lzf", data=FEW, chunks=(10,), compression="lzf")
    file["type"] = np.dtype([("a", "<i4")])
    file["reference"] = np.array([file["y"].ref], dtype=h5py.ref_dtype)
    file["title"] = "a text"


def matlab_user_block(path):
    """As MATLAB 7.3 writes it: a text of 512 bytes, then HDF5 with attributes of MATLAB's classes."""
    with h5py.File(path, "w", userblock_size=512) as file:
        file["x"] = np.array([[1.5], [2.5]])
        file["x"].attrs["MATLAB_class"] = np.bytes_("double")
    text = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Thu Jan  1 00:00:00 1970 HDF5 schema 1.00 ."
    with open(path, "r+b") as file:
        file.write(text.ljust(124) + bytes(2) + b"\0\2IM")


FILES = {
    name: globals()[name]
    for name in """soft_link external_link virtual external_storage unknown_filter lzf_filter declared_terabytes contiguous_terabytes
    many_declared_gigabytes beyond_64_bits deep_groups cycle cycle_to_root second_name named_type compound strings opaque enumeration untrue
    no_shape long_double dimension_scale reference_attribute table_of_strings latin_text name_with_dots
    texts latin_string wide_string no_string
    compressed_twice fletcher32_of_other_bytes chunks_of_one_element deflate_of_fewer_bytes""".split()
}
FILES["zstd_of_fewer_bytes"] = zstd_frame(rle_frame(100))
FILES["zstd_of_more_bytes"] = zstd_frame(rle_frame(100_000))
FILES["zstd_of_terabytes"] = zstd_frame(rle_frame(2800, 2**45))
FILES["zstd_of_garbage"] = zstd_frame(b"garbage" * 10)


def main():
    for bound in ("earliest", "v110"):
        with h5py.File(FOLDER / f"all_kinds_{bound}.h5", "w", libver=(bound, "v110")) as file:
            all_kinds(file)
    with h5py.File(FOLDER / "user_block.h5", "w", userblock_size=512) as file:
        file["a"] = FEW.astype("<f4")
    with h5py.File(FOLDER / "mixed_content.h5", "w") as file:
        mixed_content(file)
    matlab_user_block(FOLDER / "matlab_user_block.mat")
    with h5py.File(FOLDER / "chunk_of_a_million_v110.h5", "w", libver=("v110", "v110")) as file:
        chunk_of_a_million(file)
    for name, make in FILES.items():
        for bound in ("earliest", "v110"):
            with h5py.File(FOLDER / f"{name}_{bound}.h5", "w", libver=(bound, "v110")) as file:
                make(file)
        # With so many links in the root that HDF5 keeps them in a fractal heap.
        with h5py.File(FOLDER / f"{name}_dense.h5", "w", libver=("v110", "v110")) as file:
            for i in range(12):
                file.create_group(f"filler_{i}")
            make(file)


main()
