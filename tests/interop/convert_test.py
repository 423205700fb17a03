"""Runs `holdfast convert` in both directions, as a user does, with the real libraries on the other side."""

import json
import os
import pickle
import subprocess

import h5py
import keras
import ml_dtypes
import numpy as np
import pytest
from keras import layers
from safetensors.numpy import load_file, save_file

from exchange import arrays, assert_same_bits
from keras_savepoint_test import in_keras, savepoint
from keras_support import FORMS, assert_same_bits as assert_same_list, load, save, scramble, values

TARGETS = {"weights": "keras-weights", "archive": "keras", "legacy_weights": "keras-legacy-weights",
           "legacy_model": "keras-legacy"}
SUFFIXES = {"weights": ".weights.h5", "archive": ".keras", "legacy_weights": ".h5", "legacy_model": ".h5"}


def holdfast(*words, exit_code=0):
    """Runs the command; returns what it printed."""
    program = os.path.join(os.environ["HOLDFAST_BUILD"], "bin", "holdfast")
    result = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert result.returncode == exit_code, (result.returncode, result.stdout, result.stderr)
    return result.stdout + result.stderr


def test_safetensors_go_to_holdfast_and_back_bit_for_bit(tmp_path):
    save_file(arrays(), tmp_path / "a.safetensors", metadata={"format": "np"})

    holdfast("convert", tmp_path / "a.safetensors", tmp_path / "a.h5")
    holdfast("diff", tmp_path / "a.safetensors", tmp_path / "a.h5")
    holdfast("convert", tmp_path / "a.h5", tmp_path / "b.safetensors")

    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_arrays_of_numpy_go_to_holdfast_and_back_bit_for_bit(tmp_path):
    expected = {name: array for name, array in arrays().items() if array.dtype != ml_dtypes.bfloat16}
    np.savez_compressed(tmp_path / "a.npz", **expected)

    holdfast("convert", tmp_path / "a.npz", tmp_path / "a.h5", "--compression", "zstd", "--level", 3)
    holdfast("convert", tmp_path / "a.h5", tmp_path / "b.npz")

    with np.load(tmp_path / "b.npz") as found:
        assert_same_bits({name: found[name] for name in found.files}, expected)


def test_what_h5py_wrote_goes_to_holdfast_bit_for_bit(tmp_path):
    expected = {name: array for name, array in arrays().items() if array.dtype != ml_dtypes.bfloat16}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, array in expected.items():
            chunked = array.ndim > 0 and array.size > 0
            file.create_dataset(name, data=array, **({"compression": "gzip", "shuffle": True} if chunked else {}))
        file.attrs["learning_rate"] = 0.25

    holdfast("convert", tmp_path / "a.h5", tmp_path / "b.h5")
    holdfast("convert", tmp_path / "b.h5", tmp_path / "b.npz")

    with np.load(tmp_path / "b.npz") as found:
        loaded = dict(found)
    metadata = json.loads(loaded.pop("holdfast.metadata.json"))
    assert_same_bits(loaded, expected)
    assert metadata == {"kind": "hdf5", "attributes": {"": {"learning_rate": 0.25}}}


def test_numpys_bf16_is_read_as_the_note_says(tmp_path):
    expected = np.arange(6, dtype=ml_dtypes.bfloat16)
    save_file({"a": expected}, tmp_path / "a.safetensors")

    said = holdfast("convert", tmp_path / "a.safetensors", tmp_path / "a.npz")

    assert "array.view(ml_dtypes.bfloat16)" in said
    with np.load(tmp_path / "a.npz") as found:
        assert found["a"].view(ml_dtypes.bfloat16).tobytes() == expected.tobytes()


def test_h5py_reads_the_portable_mode(tmp_path):
    expected = np.random.default_rng(1).normal(size=(300, 200)).astype(np.float32)
    save_file({"part/a": expected}, tmp_path / "a.safetensors")

    holdfast("convert", tmp_path / "a.safetensors", tmp_path / "a.h5", "--compression", "none")

    with h5py.File(tmp_path / "a.h5") as file:
        assert file["part/a"].chunks is None
        assert file["part/a"][()].tobytes() == expected.tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_any_keras_file_goes_to_holdfast_and_back(form, tmp_path):
    model = keras.Sequential(
        [keras.Input((7, 4, 2)), layers.ConvLSTM1D(3, 2), layers.LayerNormalization(), layers.Dense(2)])
    scramble(model)

    # A file that describes a model which Holdfast cannot build is converted to arrays alone: the exit code says so.
    describes_model = form in ("archive", "legacy_model")
    said = holdfast("convert", save(model, tmp_path, form), tmp_path / "a.h5", exit_code=1 if describes_model else 0)
    assert ("LSTM" in said) == describes_model, said
    holdfast("verify", tmp_path / "a.h5")
    back = tmp_path / ("b" + SUFFIXES[form])
    holdfast("convert", tmp_path / "a.h5", back, "--to", TARGETS[form])

    expected = values(model)
    assert_same_list(values(load(back, form, model)), expected)


@pytest.mark.parametrize("form", FORMS)
def test_a_savepoint_becomes_a_keras_model_and_its_weights_a_savepoint_again(form, tmp_path):
    file, content = savepoint(tmp_path)
    model = tmp_path / ("model" + SUFFIXES[form])

    there = holdfast("convert", file, model, "--to", TARGETS[form])
    found = load(model, form, in_keras())
    back = holdfast("convert", model, tmp_path / "back.h5", "--like", file)

    for layer in found.layers:
        for weight in layer.weights:
            assert np.asarray(weight).tobytes() == content[f"model/{layer.name}/{weight.name}"].tobytes(), weight.path
    has_no_optimizer = form == "legacy_weights"
    assert ("the optimizer's state (24 arrays) is left out" in there) == has_no_optimizer, there
    assert ("the optimizer's state is that of a new one" in back) == has_no_optimizer, back
    holdfast("diff", file, tmp_path / "back.h5", exit_code=1 if has_no_optimizer else 0)


def test_a_savepoint_becomes_a_state_dict_and_back(tmp_path):
    file, content = savepoint(tmp_path)

    said = holdfast("convert", file, tmp_path / "a.safetensors", "--to", "pytorch")
    holdfast("convert", tmp_path / "a.safetensors", tmp_path / "b.h5", "--like", file)

    state = load_file(tmp_path / "a.safetensors")
    assert "the optimizer's state (24 arrays) is left out" in said
    assert state["more.weight"].tobytes() == np.ascontiguousarray(content["model/more/kernel"].T).tobytes()
    kernel = content["model/first/kernel"].transpose(3, 2, 0, 1)
    assert state["first.weight"].tobytes() == np.ascontiguousarray(kernel).tobytes()
    difference = holdfast("diff", file, tmp_path / "b.h5", exit_code=1)
    assert "different: 0 of 16 common arrays, 24 only in A, 0 only in B, metadata equal" in difference


def test_files_that_are_not_read_are_refused_in_a_sentence(tmp_path):
    (tmp_path / "a.pt").write_bytes(pickle.dumps({"a": 1}))
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["data"] = ["an", "array", "of", "strings"]
    (tmp_path / "c.txt").write_text("Hello")

    for name, word in [("a.pt", "safetensors.torch.save_file"), ("b.h5", "\"data\""), ("c.txt", "Holdfast reads")]:
        said = holdfast("convert", tmp_path / name, tmp_path / "out.h5", exit_code=2)
        assert said.startswith("holdfast: ") and name in said and word in said, said
        assert said.count("\n") == 1, said
        assert not (tmp_path / "out.h5").exists()
