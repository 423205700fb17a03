"""Shared by the tests against Keras: the program under test, and Keras files of all forms."""

import os
import subprocess

import h5py
import hdf5plugin  # noqa: F401  registers the zstd filter
import keras
import numpy as np
from keras.src.legacy.saving import legacy_h5_format

FORMS = ("weights", "archive", "legacy_weights", "legacy_model")
SUFFIXES = {"weights": ".weights.h5", "archive": ".keras", "legacy_weights": ".h5", "legacy_model": ".h5"}


def program(*words, fails=False):
    """Runs keras_program; returns what it wrote to standard error."""
    path = os.path.join(os.environ["HOLDFAST_BUILD"], "bin", "keras_program")
    result = subprocess.run([path, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert result.returncode == (1 if fails else 0), result.stderr
    return result.stderr


def predicted_by_holdfast(model, inputs, folder):
    """The outputs, flat, of the model in a file of ours; `inputs` has an array for each of its inputs."""
    (folder / "x.bin").write_bytes(b"".join(values.tobytes() for values in inputs))
    path = os.path.join(os.environ["HOLDFAST_BUILD"], "bin", "model_program")
    subprocess.run([path, model, folder / "x.bin", str(len(inputs[0])), folder / "y.bin"], check=True, timeout=120)
    return np.fromfile(folder / "y.bin", "f4")


def save(model, folder, form, stem="from_keras"):
    """Saves the model as Keras itself does; returns the path."""
    path = folder / (stem + "_" + form + SUFFIXES[form])
    if form == "weights":
        model.save_weights(path)
    elif form == "legacy_weights":
        with h5py.File(path, "w") as file:
            legacy_h5_format.save_weights_to_hdf5_group(file, model)
    else:
        model.save(path)
    return path


def load(path, form, model):
    """The model that Keras loads. Weights alone are loaded into `model`, whose own are overwritten first."""
    if form in ("archive", "legacy_model"):
        return keras.saving.load_model(path, compile=False)
    scramble(model)
    model.load_weights(path)
    return model


def scramble(model, seed=0):
    """Assigns random values that every type can hold and that no variable starts with."""
    generator = np.random.default_rng(seed)
    for variable in model.variables:
        if "seed_generator" in variable.path:
            continue
        shape, dtype = variable.shape, variable.dtype
        if np.issubdtype(np.dtype(keras.backend.standardize_dtype(dtype)) if dtype != "bfloat16" else np.float32,
                         np.integer):
            variable.assign(generator.integers(0, 100, shape))
        else:
            variable.assign(generator.normal(size=shape).astype(np.float32))


def values(model):
    """The values of all weights, in Keras's order."""
    return [keras.ops.convert_to_numpy(weight) for weight in model.weights]


def assert_same_bits(actual, expected):
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def arrays(path):
    """The arrays of a Holdfast file; bf16 as uint16."""
    result = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: result.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    result.pop("metadata")
    return result
