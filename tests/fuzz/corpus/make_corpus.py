#!/usr/bin/env python3
"""Writes the corpus of each fuzz target next to this script: small files that reach every branch of the readers.

The files are kept in the repository; run the script again after a change here. It needs only the standard library,
Pillow for jpeg/, and xxhash for cache_file/ and bad_samples/.
user_block/, index/ and literals_frame/ are cut from files that Holdfast writes. They are made only when the program that
writes such files is given: make_corpus.py build/release/bin/exchange_program."""

import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))


def save(target, name, content):
    os.makedirs(os.path.join(HERE, target), exist_ok=True)
    with open(os.path.join(HERE, target, name), "wb") as file:
        file.write(content)


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def make_safetensors():
    tensor = lambda dtype, shape, begin, end: {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    sizes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I8": 1, "I16": 2, "I32": 4, "I64": 8,
             "U8": 1, "U16": 2, "U32": 4, "U64": 8, "BOOL": 1}
    offset, all_types = 0, {}
    for name, size in sizes.items():
        all_types[name.lower()] = tensor(name, [2], offset, offset + 2 * size)
        offset += 2 * size
    save("safetensors", "all_types", safetensors(all_types, bytes(offset)))
    save("safetensors", "empty", safetensors({}))
    save("safetensors", "padded", safetensors(b'{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}      ', b"x"))
    save("safetensors", "metadata", safetensors({"__metadata__": {"format": "pt", "\u00e9": "\n"}}))
    save("safetensors", "holdfast", safetensors({"__metadata__": {"holdfast.metadata": '{"step":5}'},
                                                 "model/a": tensor("F32", [1, 2], 0, 8)}, bytes(8)))
    save("safetensors", "holes", safetensors({"a": tensor("U8", [1], 0, 1), "b": tensor("U8", [1], 2, 3)}, b"xyz"))
    save("safetensors", "overlap", safetensors({"a": tensor("U8", [2], 0, 2), "b": tensor("U8", [2], 1, 3)}, b"xyz"))
    save("safetensors", "twice", safetensors(
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'))
    save("safetensors", "beyond_64_bits", safetensors({"a": tensor("F64", [2**32, 2**32, 0], 0, 0),
                                                       "b": tensor("F64", [2**63, 2], 0, 0)}))
    save("safetensors", "float8", safetensors({"a": tensor("F8_E4M3", [1], 0, 1)}, b"x"))
    save("safetensors", "nested", safetensors(b'{"a":[[[{"b":{"c":1.5e9,"d":-1,"e":null,"f":true}}]]]}'))


def archive(compression, members, pipe=False, zip64=False, comment=b""):
    class Pipe(io.RawIOBase):
        def __init__(self):
            self.buffer = io.BytesIO()

        def writable(self):
            return True

        def write(self, data):
            return self.buffer.write(data)

    raw = io.BytesIO()
    stream = Pipe() if pipe else raw
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = compression
            with file.open(info, "w", force_zip64=zip64) as member:
                member.write(content)
        file.comment = comment
    return (stream.buffer if pipe else raw).getvalue()


def make_zip():
    members = {"a.npy": b"hello" * 20, "b/c.npy": b"", "assets/": b""}
    save("zip", "stored", archive(zipfile.ZIP_STORED, members))
    save("zip", "deflated", archive(zipfile.ZIP_DEFLATED, members, comment=b"a comment"))
    save("zip", "zip64", archive(zipfile.ZIP_DEFLATED, members, zip64=True))
    save("zip", "piped", archive(zipfile.ZIP_DEFLATED, members, pipe=True))
    save("zip", "piped_zip64", archive(zipfile.ZIP_STORED, members, pipe=True, zip64=True))
    save("zip", "unicode", archive(zipfile.ZIP_STORED, {"\u00e9": b"x"}))
    save("zip", "climbing", archive(zipfile.ZIP_STORED, {"../a": b"x"}))
    save("zip", "empty", archive(zipfile.ZIP_STORED, {}))
    entry = archive(zipfile.ZIP_STORED, {"a": b"x"})
    directory = entry.index(b"PK\1\2")
    end = entry.index(b"PK\5\6")
    wide = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, end - directory, directory)
    wide += struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    full = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    save("zip", "zip64_end", entry[:end] + wide + full)


def npy(text, data, version=1):
    header = text.encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def make_npy():
    form = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }   \n"
    for name in ["<f8", "<f4", "<f2", "<V2", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "|b1"]:
        save("npy", name[1:], npy(form % (name, "False", "(2,)"), bytes(2 * int(name[2:]))))
    save("npy", "scalar", npy(form % (">f8", "False", "()"), bytes(8)))
    save("npy", "fortran", npy(form % (">i2", "True", "(2, 3, 2)"), bytes(range(24)), 2))
    save("npy", "nothing", npy(form % ("<f4", "True", "(2, 0, 5)"), b"", 3))
    save("npy", "python2", npy('{"shape": (3L, 4L), "descr": "<f4", "fortran_order": False}', bytes(48)))
    save("npy", "objects", npy(form % ("|O", "False", "(1,)"), b"cos\nsystem\n."))
    save("npy", "structured", npy(form.replace("'%s'", "%s") % ("[('a', '<f4')]", "False", "(1,)"), bytes(4)))
    save("npy", "beyond_64_bits", npy(form % ("<f8", "False", "(4294967296, 4294967296)"), b""))


def make_npz():
    form = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }   \n"
    members = {"x.npy": npy(form % ("<f4", "False", "(2, 2)"), bytes(range(16))),
               "columns.npy": npy(form % (">i2", "True", "(2, 3)"), bytes(range(12))),
               "people.npy": npy(form % ("|O", "False", "(1,)"), b"cos\nsystem\n."),
               "none.npy": npy(form % ("|b1", "False", "(0,)"), b""),
               "truth.npy": npy(form % ("|b1", "False", "(2,)"), b"\0\2"),
               "short.npy": npy(form % ("<f8", "False", "(4,)"), b"x"),
               "README": b"text"}
    save("npz", "stored", archive(zipfile.ZIP_STORED, members))
    save("npz", "deflated", archive(zipfile.ZIP_DEFLATED, members, pipe=True))
    save("npz", "zip64", archive(zipfile.ZIP_DEFLATED, members, zip64=True))


def make_text_encoder():
    def save_encoder(name, **fields):
        save("text_encoder", name, json.dumps({"format": "holdfast text encoder", "version": 1, **fields}).encode())

    save_encoder("characters", unit="characters", other=False, vocabulary=["\n", "a", "\u00fc", "\u20ac", "\U0001f600"])
    save_encoder("other", unit="characters", other=True, vocabulary=["a"])
    save_encoder("bytes", unit="bytes")
    save_encoder("unsorted", unit="characters", other=False, vocabulary=["b", "a"])
    save_encoder("words", unit="characters", other=False, vocabulary=["ab"])
    save_encoder("numbers", unit="characters", other=1, vocabulary=[1])
    save_encoder("empty", unit="characters", other=False, vocabulary=[])
    save("text_encoder", "bad_utf8", b"a\xc3\xbc\xff")
    save("text_encoder", "surrogate", b"\xed\xa0\x80")
    save("text_encoder", "nul", b"a\0b")
    save("text_encoder", "deep", b"[" * 5000)


def make_csv():
    # The first byte chooses the options: header (0 to 2), and from 4 on semicolons and decimal commas.
    save("csv", "types", b"\x00id,size,town,none\n1,-2.5e3,Bonn,\n+2,NA,\xc3\x84gidienberg,NaN\n")
    save("csv", "quotes", b'\x01"a ""b""","c,d"\r\n"1\n2" , x \r\n\r\n"",\r\n')
    save("csv", "mark", b"\x00\xef\xbb\xbfa\n1\n")
    save("csv", "no_header", b"\x021,2\n3,4")
    save("csv", "decimal_commas", b"\x04a;b\n1,5;2\n-,5;12345678901234567890\n")
    save("csv", "wide", b"\x00a\n9223372036854775808\n")
    save("csv", "out_of_range", b"\x00a,b\n1,1e999\n")
    save("csv", "ragged", b"\x00a,b\n1\n")
    save("csv", "open_quote", b'\x00a\n"1\n')
    save("csv", "inner_quote", b'\x00a\n1"\n')
    save("csv", "text_after_quote", b'\x00a\n"1"2\n')
    save("csv", "carriage_return", b"\x00a\r1\n")
    save("csv", "nul", b"\x00a\n\x00\n")
    save("csv", "latin1", b"\x00a\n\xe4\n")
    save("csv", "twice", b"\x00a,a\n1,2\n")


def make_table_encoder():
    number = {"column": "a", "kind": "number", "mean": 0.5, "deviation": 2.0, "fill": -1}
    one_hot = {"column": "b", "kind": "one_hot", "categories": ["x", "y", "?"], "other": False, "fill": "?"}
    ids = {"column": "c", "kind": "id", "categories": ["1", "2"], "other": True}
    target = {"column": "a", "kind": "number", "mean": 0, "deviation": 1}

    def save_encoder(name, features, targets, version=1, form="holdfast table encoder"):
        save("table_encoder", name, json.dumps({"format": form, "version": version, "features": features,
                                                "targets": targets}, separators=(",", ":")).encode())

    save_encoder("kinds", [number, one_hot, ids], [{**target, "column": "d"}])
    save_encoder("class", [number], [{**ids, "other": False}])
    save_encoder("two_targets", [one_hot], [target, {**target, "column": "c"}])
    save_encoder("twice", [number], [target])
    save_encoder("no_deviation", [{**number, "deviation": 0}], [{**target, "column": "d"}])
    save_encoder("category_twice", [{**one_hot, "categories": ["x", "x"]}], [target])
    save_encoder("unknown_fill", [{**one_hot, "fill": "z"}], [target])
    save_encoder("other_version", [one_hot], [target], 2)
    save_encoder("other_format", [one_hot], [target], 1, "a")
    save("table_encoder", "deep", b"[" * 1500)


def of_our_own(program, arrays, metadata=None):
    """The bytes of a Holdfast file with arrays given as .npy files."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "a.npz"), os.path.join(folder, "a.h5")
        members = {f"{name}.npy": content for name, content in arrays.items()}
        if metadata:
            members["holdfast.metadata.json"] = metadata
        with open(source, "wb") as file:
            file.write(archive(zipfile.ZIP_STORED, members))
        subprocess.run([program, "npz", "holdfast", source, target], check=True)
        with open(target, "rb") as file:
            return file.read()


def make_user_block_and_index(program):
    form = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
    files = {
        "empty": of_our_own(program, {}),
        "small": of_our_own(program, {"model/a/kernel": npy(form % ("<f4", "(2, 3)"), bytes(24)),
                                      "model/a/bias": npy(form % ("<V2", "(3,)"), bytes(6)),
                                      "nothing": npy(form % ("<i8", "(2, 0)"), b""),
                                      "scalar": npy(form % ("<u8", "()"), bytes(8))}, b'{"step": 5}'),
        "chunks": of_our_own(program, {"a": npy(form % ("<f4", "(600, 1000)"), bytes(2_400_000)),
                                       "b": npy(form % ("|u1", "(3, 4097)"), bytes(3 * 4097))}),
    }
    for name, file in files.items():
        offset, size = struct.unpack_from("<QQ", file, 24)
        save("user_block", name, file[:512])
        save("index", name, file[offset:offset + size])
    block = files["small"][:512]
    save("user_block", "hdf5", b"\x89HDF\r\n\x1a\n" + bytes(504))
    save("user_block", "zero", bytes(512))
    save("user_block", "version_9", block[:8] + struct.pack("<I", 9) + block[12:])
    save("user_block", "index_beyond_the_end", block[:24] + struct.pack("<QQ", 2**63, 2**63) + block[40:])


def first_piece(file):
    """The bytes of the first piece of the array "a"."""
    begin, size = struct.unpack_from("<QQ", file, 24)
    record = file.index(b"\x01\x00a", begin, begin + size) + 3
    axes = file[record + 2]
    offset, = struct.unpack_from("<Q", file, record + 4 + 8 * axes)
    length, = struct.unpack_from("<I", file, record + 4 + 8 * axes + 8 + 16 + 4)
    return file[offset:offset + length]


def make_literals_frames(program):
    draw = random.Random(1)
    normal = lambda count: [draw.gauss(0, 0.02) for _ in range(count)]
    f32 = struct.pack("<1100f", *normal(1100))
    bf16 = b"".join(struct.pack("<f", value)[2:] for value in normal(2100))
    contents = {  # by the size of an element
        "f32": (4, "<f4", f32), "bf16": (2, "<V2", bf16), "f64": (8, "<f8", struct.pack("<600d", *normal(600))),
        "u8": (1, "|u1", bytes(min(255, int(draw.expovariate(0.2))) for _ in range(5000))),
        "few": (1, "|u1", bytes(draw.choice(b"aaaaaaab") for _ in range(5000))),
        "zeros": (4, "<f4", bytes(8000)), "i64": (8, "<i8", struct.pack("<700q", *range(700))),
    }
    for name, (width, kind, content) in contents.items():
        header = "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % (kind, len(content) // width)
        piece = first_piece(of_our_own(program, {"a": npy(header, content)}))
        save("literals_frame", name, bytes([width.bit_length() - 1]) + piece)


def make_graph():
    def graph(shape, *layers):
        return {"format": "holdfast.sequential", "version": 1, "input_shape": shape,
                "layers": [{"kind": kind, "name": name, "config": config} for kind, name, config in layers]}

    start = {"use_bias": True, "kernel_initializer": "glorot_uniform", "bias_initializer": "zeros"}
    pool = {"pool_size": [2, 2], "strides": [2, 2], "padding": "valid"}
    conv = {"filters": 4, "kernel_size": [3, 3], "strides": [1, 1], "padding": "same", "activation": "relu", **start}
    save("graph", "all_layers", json.dumps(graph(
        [8, 8, 1], ("Conv2D", "conv2d", conv),
        ("BatchNormalization", "bn", {"momentum": 0.5, "epsilon": 0.25, "scale": False}),
        ("MaxPooling2D", "max_pooling2d", pool), ("AveragePooling2D", "average_pooling2d", pool),
        ("Flatten", "flatten", {}), ("Dropout", "dropout", {"rate": 0.5}),
        ("Activation", "activation", {"activation": "tanh"}),
        ("Dense", "dense", {"units": 10, "activation": "softmax", **start}))).encode())
    save("graph", "no_layers", json.dumps(graph([4])).encode())
    save("graph", "dropout", json.dumps(graph([4], ("Dropout", "dropout", {"rate": 0.5}))).encode())
    save("graph", "flatten", json.dumps(graph([2, 3, 4], ("Flatten", "flatten", {}))).encode())
    save("graph", "unknown", json.dumps(graph([4], ("Lambda", "lambda", {"code": "x"}))).encode())
    save("graph", "version_2", json.dumps({**graph([4]), "version": 2}).encode())
    save("graph", "huge_shape", json.dumps(graph([2**62, 2**62])).encode())
    save("graph", "no_json", b"{")
    dense = {"units": 4, "activation": "relu", **start}
    save("graph", "model", json.dumps({
        "format": "holdfast.model", "version": 1,
        "inputs": [{"name": "a", "shape": [4], "dtype": "f32"}, {"name": "b", "shape": [2, 2], "dtype": "f32"}],
        "layers": [{"kind": "Dense", "name": "tower/dense", "config": dense},
                   {"kind": "Operation", "name": "add", "config": {"operation": "add", "constants": [None, None]}},
                   {"kind": "Operation", "name": "sum", "config": {"operation": "sum", "axes": [0, 1]}},
                   {"kind": "Concatenate", "name": "concatenate", "config": {"axis": -1}}],
        "calls": [{"layer": 0, "inputs": [[-1, 0]]}, {"layer": 0, "inputs": [[0, 0]]},
                  {"layer": 1, "inputs": [[1, 0], [-1, 0]]}, {"layer": 2, "inputs": [[-1, 1]]},
                  {"layer": 3, "inputs": [[2, 0], [0, 0]]}],
        "outputs": [[4, 0], [3, 0]]}).encode())
    make_kinds_of_layers()


def make_kinds_of_layers():
    """Graphs with one call of each kind of layer, some kinds in a file: long files are cut off when they are changed."""
    folder = os.path.join(HERE, "..", "..", "unit", "nn", "layers", "reference")
    kinds = sorted(name[:-len(".json")] for name in os.listdir(folder) if name.endswith(".json"))
    for part in range(0, len(kinds), 9):
        inputs, layers, calls = [], [], []
        for kind in kinds[part:part + 9]:
            with open(os.path.join(folder, kind + ".json")) as file:
                case = json.load(file)["cases"][0]
            sources = []
            for values in case["inputs"]:
                sources.append([-1, len(inputs)])
                inputs.append({"name": f"x{len(inputs)}", "shape": values["shape"][1:], "dtype": "f32"})
            calls.append({"layer": len(layers), "inputs": sources})
            layers.append({"kind": kind, "name": kind.lower(), "config": case["config"]})
        save("graph", f"kinds_{part // 9}", json.dumps({
            "format": "holdfast.model", "version": 1, "inputs": inputs, "layers": layers, "calls": calls,
            "outputs": [[call, 0] for call in range(len(calls))]}).encode())
    save("graph", "embedding", json.dumps({
        "format": "holdfast.model", "version": 1, "inputs": [{"name": "ids", "shape": [3], "dtype": "u16"}],
        "layers": [{"kind": "Embedding", "name": "e",
                    "config": {"vocabulary": 5, "width": 2, "initializer": "uniform(-0.05,0.05)"}}],
        "calls": [{"layer": 0, "inputs": [[-1, 0]]}], "outputs": [[0, 0]]}).encode())


def make_foreign_check():
    """Copies the unit tests' files in which the check finds something, in both versions of HDF5's structures."""
    folder = os.path.join(HERE, "..", "..", "unit", "exchange", "foreign_hdf5", "files")
    for name in ["soft_link", "external_link", "virtual", "external_storage", "unknown_filter", "compressed_twice",
                 "beyond_64_bits", "cycle", "second_name", "untrue"]:
        for structures in ["earliest", "v110"]:
            with open(os.path.join(folder, f"{name}_{structures}.h5"), "rb") as file:
                save("foreign_check", f"{name}_{structures}", file.read())
    for name in ["soft_link_dense", "dimension_scale_v110", "user_block"]:
        with open(os.path.join(folder, f"{name}.h5"), "rb") as file:
            save("foreign_check", name, file.read())


def make_keras_functional():
    def tensor(*history):
        return {"class_name": "__keras_tensor__", "config": {"keras_history": list(history)}}

    def call(*arguments):
        return {"args": list(arguments), "kwargs": {}}

    def entry(kind, name, calls, module="keras.layers", **config):
        return {"module": module, "class_name": kind, "name": name, "inbound_nodes": calls,
                "config": {"name": name, "trainable": True, **config}}

    def image(name="x"):
        return entry("InputLayer", name, [], batch_shape=[None, 6, 6, 2], dtype="float32")

    def model(layers, outputs, inputs=(("x", 0, 0),), name="net"):
        return {"class_name": "Functional", "config": {"name": name, "layers": layers, "input_layers": inputs,
                                                       "output_layers": outputs}}

    def chain(*layers, shape=(6, 6, 2), dtype="float32"):
        entries, last = [entry("InputLayer", "x", [], batch_shape=[None, *shape], dtype=dtype)], "x"
        for place, (kind, config) in enumerate(layers):
            entries.append(entry(kind, f"layer_{place}", [call(tensor(last, 0, 0))], **config))
            last = f"layer_{place}"
        return model(entries, [last, 0, 0])

    def save_model(name, content):
        save("keras_functional", name, json.dumps(content).encode())

    save_model("all_layers", chain(
        ("Rescaling", {"scale": 0.5, "offset": 1}), ("ZeroPadding2D", {"padding": [[1, 0], [0, 2]]}),
        ("Cropping2D", {"cropping": 1}), ("UpSampling2D", {"size": 2}),
        ("Conv2D", {"filters": 3, "kernel_size": 2, "activation": "silu"}), ("BatchNormalization", {"axis": [3]}),
        ("LayerNormalization", {"axis": -1}), ("RMSNormalization", {}), ("ReLU", {}), ("Softmax", {"axis": 3}),
        ("MaxPooling2D", {"pool_size": [2, 1], "padding": "same"}), ("AveragePooling2D", {}),
        ("GlobalMaxPooling2D", {"keepdims": True}), ("Permute", {"dims": [3, 1, 2]}),
        ("Reshape", {"target_shape": [-1, 3]}), ("GlobalAveragePooling1D", {}), ("RepeatVector", {"n": 2}),
        ("Dropout", {"rate": 0.5}), ("Flatten", {}), ("Activation", {"activation": "gelu"}), ("Identity", {}),
        ("Dense", {"units": 2, "kernel_initializer": {"class_name": "RandomNormal", "config": {"stddev": 0.5}}})))
    window = {"filters": 4, "kernel_size": 3, "padding": "same", "use_bias": False}
    save_model("signals", chain(
        ("Embedding", {"input_dim": 9, "output_dim": 4, "embeddings_initializer": "normal"}),
        ("Conv1D", {**window, "padding": "causal", "activation": "elu", "groups": 2}),
        ("Conv1DTranspose", {**window, "strides": 2, "output_padding": 1}),
        ("DepthwiseConv1D", {"kernel_size": [2], "depth_multiplier": 2}), ("SeparableConv1D", window),
        ("Normalization", {"axis": [2], "mean": [[1, 2, 3, 4]], "variance": [1, 1, 1, 2], "invert": True}),
        ("GroupNormalization", {"groups": -1}), ("BatchNormalization", {"scale": False, "center": False}),
        ("PReLU", {"shared_axes": [1], "alpha_initializer": {"class_name": "Constant", "config": {"value": 0.25}}}),
        ("SpatialDropout1D", {"rate": 0.25}), ("AlphaDropout", {"rate": 0.25}), ("GaussianDropout", {"rate": 0.25}),
        ("GaussianNoise", {"stddev": 0.5}), ("ZeroPadding1D", {"padding": [1, 2]}), ("Cropping1D", {"cropping": 1}),
        ("UpSampling1D", {"size": 2}), ("MaxPooling1D", {}), ("AveragePooling1D", {"pool_size": [2], "strides": [1]}),
        ("GlobalMaxPooling1D", {}), shape=(12,), dtype="int32"))
    save_model("volumes", chain(
        ("Rescaling", {"scale": 0.5}), ("Conv3D", {**window, "activation": {"class_name": "LeakyReLU", "config": {}}}),
        ("Conv3DTranspose", {**window, "strides": [1, 2, 1]}), ("MaxPooling3D", {"pool_size": 1}),
        ("AveragePooling3D", {"pool_size": [2, 1, 1]}), ("ZeroPadding3D", {"padding": [[1, 0], [0, 1], [2, 2]]}),
        ("Cropping3D", {"cropping": [1, 0, 0]}), ("UpSampling3D", {"size": [1, 2, 1]}),
        ("ReLU", {"max_value": 6, "negative_slope": 0.25, "threshold": 0.5}), ("ELU", {"alpha": 0.5}),
        ("LeakyReLU", {"alpha": 0.125}), ("SpatialDropout3D", {"rate": 0.5}), ("Softmax", {"axis": 1}),
        ("GlobalAveragePooling3D", {"keepdims": True}), shape=(4, 4, 4, 2), dtype="uint8"))
    save_model("dots", model(
        [image(), image("y"), entry("Flatten", "f", [call(tensor("x", 0, 0)), call(tensor("y", 0, 0))]),
         entry("Dot", "dot", [call([tensor("f", 0, 0), tensor("f", 1, 0)])], axes=[1, -1], normalize=True),
         entry("Elu", "elu", [call(tensor("dot", 0, 0))], "keras.src.ops.nn", alpha=0.5),
         entry("Cast", "cast", [call(tensor("elu", 0, 0))], "keras.src.ops.core", dtype="float32")],
        [["cast", 0, 0]], [["x", 0, 0], ["y", 0, 0]]))
    shared = [image(), image("y"), entry("Dense", "d", [call(tensor("x", 0, 0)), call(tensor("y", 0, 0))], units=2)]
    both = [tensor("d", 0, 0), tensor("d", 1, 0)]
    save_model("shared", model(
        [*shared, entry("Add", "add", [call(both)]), entry("Concatenate", "concatenate", [call(both)], axis=3),
         entry("Multiply", "multiply", [call(both[0], 2.0)], "keras.src.ops.numpy"),
         entry("Mean", "mean", [call(both[0])], "keras.src.ops.numpy", axis=[1, 3])],
        [["add", 0, 0], ["concatenate", 0, 0], ["multiply", 0, 0], ["mean", 0, 0]], [["x", 0, 0], ["y", 0, 0]]))
    inner = model([image("i"), entry("Dense", "d", [call(tensor("i", 0, 0))], units=2)], [["d", 0, 0], ["i", 0, 0]],
                  [["i", 0, 0]], "inner")
    inner["inbound_nodes"] = [call(tensor("x", 0, 0)), call(tensor("inner", 0, 0))]
    save_model("nested", model([image(), inner], ["inner", 2, 0]))
    old = model([{"class_name": "InputLayer", "name": "x", "inbound_nodes": [],
                  "config": {"name": "x", "batch_input_shape": [None, 3]}},
                 {"class_name": "Dense", "name": "d", "inbound_nodes": [[["x", 0, 0, {}]]],
                  "config": {"name": "d", "trainable": True, "units": 2}}], [["d", 0, 0]])
    save_model("old", old)
    save_model("sequential", {"class_name": "Sequential", "config": {"name": "s", "layers": [
        {"class_name": "Dense", "config": {"name": "d", "units": 2, "batch_input_shape": [None, 3]}},
        {"class_name": "Sequential", "config": {"name": "t", "layers": [
            {"class_name": "Dense", "config": {"name": "d", "units": 2}}]}}]}})
    save_model("cycle", model([image(), entry("Dense", "d", [call(tensor("d", 0, 0))], units=2)], ["d", 0, 0]))


def png(kind, width, height, rows, bits=8, before=(), interlace=0):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(*piece) for piece in before) +
            chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b""))


def make_png():
    """The first byte chooses gray, RGB or RGBA (0, 1, 2)."""
    palette = (b"PLTE", bytes([255, 0, 0, 0, 255, 0, 9, 8, 7]))
    files = {
        "gray": png(0, 3, 2, [b"\0abc", b"\1de\x81"]),
        "bits": png(0, 9, 2, [b"\0\xa5\x80", b"\0\x5a\0"], bits=1),
        "rgb": png(2, 2, 2, [b"\2abcdef", b"\3ghijkl"]),
        "rgb16": png(2, 1, 2, [b"\0abcdef", b"\4ghijkl"], bits=16),
        "rgba": png(6, 1, 1, [b"\0abcd"]),
        "gray_alpha": png(4, 2, 1, [b"\0abcd"]),
        "palette": png(3, 3, 1, [b"\0\0\1\2"], before=[palette]),
        "palette_alpha": png(3, 3, 1, [b"\0\0\1\2"], before=[palette, (b"tRNS", b"\x80\x40")]),
        "palette_beyond": png(3, 2, 1, [b"\0\5\1"], before=[palette]),
        "gray_key": png(0, 2, 1, [b"\0\7\x08"], before=[(b"tRNS", b"\0\7")]),
        "profile": png(0, 1, 1, [b"\0a"], before=[(b"iCCP", b"x\0\0zz"), (b"tEXt", b"a\0b"), (b"gAMA", b"\0\0\0\1")]),
        "interlaced": png(0, 2, 2, [b"\0a", b"\0b", b"\0cd"], interlace=1),
        "too_wide": png(0, 1 << 30, 1, [b"\0"]),
        "too_short": png(0, 3, 3, [b"\0abc"]),
        "too_long": png(0, 1, 1, [b"\0abcdefgh"]),
        "wrong_filter": png(0, 1, 1, [b"\7a"]),
    }
    for name, content in files.items():
        for channels in range(3):
            save("png", f"{name}_{channels}", bytes([channels]) + content)


def make_jpeg():
    """The first byte chooses the channels, as for PNG. Needs Pillow."""
    from PIL import Image
    pixels = Image.new("RGB", (11, 9))
    pixels.putdata([((7 * i) % 256, (5 * i) % 256, (3 * i) % 256) for i in range(99)])
    files = {
        "rgb": (pixels, {}),
        "halved": (pixels, {"subsampling": 2}),
        "whole": (pixels, {"subsampling": 0}),
        "progressive": (pixels, {"progressive": True}),
        "restarts": (pixels, {"restart_marker_rows": 1}),
        "gray": (pixels.convert("L"), {}),
        "cmyk": (pixels.convert("CMYK"), {}),
        "comment": (pixels.convert("L"), {"comment": "a comment"}),
    }
    for name, (image, options) in files.items():
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=60, optimize=True, **options)
        for channels in range(3):
            save("jpeg", f"{name}_{channels}", bytes([channels]) + buffer.getvalue())


def make_host_messages():
    def save_message(name, **message):
        text = json.dumps(message).encode()
        save("host_messages", name, struct.pack(">I", len(text)) + text)

    end = {"member": 8, "exit_code": 0, "signal": 11}
    crash = {"signal": 11, "frames": [{"address": 4096, "file_offset": 16, "path": "/bin/train"}]}
    status = {"member": 7, "progress": 9, "phase": 1, "step": -1, "steps": 4, "step_time": 8, "arrivals": 2,
              "background_number": 1, "background_bytes": 4096, "is_background_callback": False, "join_state": 2,
              "samples": 17, "computing": 5, "waiting": 6, "in_background": "fsync", "is_stopped": False,
              "cpu_demand": 7}
    save_message("start", kind="start", member=7, executable="train", arguments=["train", "-v"], variables=["RANK=3"],
                 ignores_failing_writes=True)
    save_message("generation", kind="open_generation", number=3, members=[7, 5], shards=[], may_use_snapshots=True)
    save_message("exited", kind="exited", **end)
    save_message("crashed", kind="exited", crash=crash, **end)
    save_message("present", kind="present", members=[7], steps=[12], ended=[end, dict(end, crash=crash)])
    save_message("present_twice", kind="present", members=[7, 7], steps=[12, -1], ended=[])
    save_message("not_started", kind="not_started", member=7, code=2, what="there is no program train")
    save_message("statuses", kind="statuses", statuses=[status, dict(status, member=1 << 40)])
    save_message("no_phase", kind="statuses", statuses=[dict(status, phase=1e300)])


def digest(data, xxhash):
    """XXH3-128 over a tree of 64 KiB leaves (holdfast/base/digest.h)."""
    root = xxhash.xxh3_128()
    for first in range(0, len(data), 65536):
        root.update(xxhash.xxh3_128(data[first:first + 65536]).digest())
    root.update(struct.pack("<Q", len(data)))
    return root.digest()


def make_cache_file():
    """The first byte says how many samples of how many bytes the reader asks for; from 128 on the target makes the
    digest of the head right. Needs xxhash."""
    import xxhash
    text = b"made of this"

    def file(samples, size, changed={}):
        content = bytes(range(samples * size))
        index = b"".join(digest(content[i * size:(i + 1) * size], xxhash) for i in range(samples))
        numbers = struct.pack("<QQQ", changed.get("text_bytes", len(text)), changed.get("samples", samples), size)
        head = numbers + text + changed.get("index", index)
        return b"HFCACHE1" + digest(head, xxhash) + head + content

    for samples, size in [(0, 0), (1, 0), (1, 7), (3, 5)]:
        for choice in [0, 128]:
            asked = bytes([choice + 4 * size + samples])
            save("cache_file", f"samples_{samples}_of_{size}_{choice}", asked + file(samples, size))
    asked = bytes([4 * 5 + 3])
    save("cache_file", "other_text_bytes", asked + file(3, 5, {"text_bytes": 2**63}))
    save("cache_file", "other_samples", asked + file(3, 5, {"samples": 2**60}))
    save("cache_file", "other_index", asked + file(3, 5, {"index": bytes(48)}))
    save("cache_file", "text", asked + b"a text of mine")


def make_bad_samples():
    """Whole files, and contents of files. Needs xxhash."""
    import xxhash
    made_of = digest(b"made of this", xxhash).hex()

    def content(bad, first, samples=1000):
        return json.dumps({"made_of": made_of, "samples": samples, "bad": bad, "first": first})

    contents = {
        "none": content([], []),
        "two": content([3, 999], ["sample 3: cut off", "sample 999: cut off"]),
        "more_than_named": content(list(range(12)), ["sample"] * 5),
        "beyond": content([1000], ["sample"]),
        "falling": content([5, 5], ["sample"] * 2),
        "negative": content([-4294967295], ["sample"]),
        "real": content([1.5, 1e300], ["sample"] * 2),
        "boolean": content([True], ["sample"]),
        "other_data": content([], [], samples=7),
        "nested": "[" * 2000,
    }
    for name, text in contents.items():
        save("bad_samples", name, text.encode())
        right = digest(text.encode(), xxhash).hex()
        index = {"format": "holdfast bad samples", "version": 1, "digest": right, "content": text}
        save("bad_samples", name + "_file", json.dumps(index).encode())


make_safetensors()
make_zip()
make_npy()
make_npz()
make_text_encoder()
make_csv()
make_table_encoder()
make_graph()
make_keras_functional()
make_foreign_check()
make_host_messages()
make_png()
try:
    make_jpeg()
except ImportError:
    print("jpeg/ is left as it is: there is no Pillow")
try:
    make_cache_file()
    make_bad_samples()
except ImportError:
    print("cache_file/ and bad_samples/ are left as they are: there is no xxhash")
if len(sys.argv) > 1:
    make_user_block_and_index(sys.argv[1])
    make_literals_frames(sys.argv[1])
