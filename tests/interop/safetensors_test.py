"""The safetensors library reads what Holdfast writes, and vice versa, bit for bit."""

import json

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from exchange import arrays, assert_same_bits, convert


def test_the_library_reads_what_holdfast_writes(tmp_path):
    save_file(arrays(), tmp_path / "a.safetensors", metadata={"format": "np", "é": "\n\""})

    convert("safetensors", "holdfast", tmp_path / "a.safetensors", tmp_path / "a.h5")
    convert("holdfast", "safetensors", tmp_path / "a.h5", tmp_path / "b.safetensors")

    assert_same_bits(load_file(tmp_path / "b.safetensors"), arrays())
    with safe_open(tmp_path / "b.safetensors", framework="numpy") as file:
        assert file.metadata() == {"format": "np", "é": "\n\""}


def test_holdfast_writes_the_bytes_that_the_library_writes(tmp_path):
    save_file(arrays(), tmp_path / "a.safetensors", metadata={"format": "np"})

    convert("safetensors", "safetensors", tmp_path / "a.safetensors", tmp_path / "b.safetensors")

    assert (tmp_path / "b.safetensors").read_bytes() == (tmp_path / "a.safetensors").read_bytes()


def test_metadata_of_holdfast_is_one_text_of_json(tmp_path):
    text = json.dumps({"step": 5, "graph": {"layers": ["é"]}})
    save_file({"a": np.zeros(1)}, tmp_path / "a.safetensors", metadata={"holdfast.metadata": text})

    convert("safetensors", "holdfast", tmp_path / "a.safetensors", tmp_path / "a.h5")
    convert("holdfast", "safetensors", tmp_path / "a.h5", tmp_path / "b.safetensors")

    with safe_open(tmp_path / "b.safetensors", framework="numpy") as file:
        assert file.metadata() == {"holdfast.metadata": text}


def test_thousands_of_tensors(tmp_path):
    many = {f"layer.{i}.weight": np.full((i % 7,), i, np.float32) for i in range(10_000)}
    save_file(many, tmp_path / "a.safetensors")

    convert("safetensors", "npz", tmp_path / "a.safetensors", tmp_path / "a.npz")
    convert("npz", "safetensors", tmp_path / "a.npz", tmp_path / "b.safetensors")

    assert_same_bits(load_file(tmp_path / "b.safetensors"), many)
