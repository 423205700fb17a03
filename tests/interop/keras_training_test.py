"""Keras trains on, on a back end that can train, with what `holdfast convert` made of a savepoint.

BACKEND: jax
"""

import json
import os

# Compiling a step takes longer than the two steps that are trained.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import keras
import numpy as np

from convert_test import holdfast
from keras_savepoint_test import savepoint
from keras_support import assert_same_bits as assert_same_list, values


def test_what_keras_trained_on_becomes_a_savepoint(tmp_path):
    file, _ = savepoint(tmp_path)
    holdfast("convert", file, tmp_path / "a.keras")
    model = keras.saving.load_model(tmp_path / "a.keras")
    generator = np.random.default_rng(4)
    model.fit(generator.normal(size=(8, 9, 8, 2)), generator.integers(0, 5, 8), epochs=1, batch_size=4, verbose=0)
    model.save(tmp_path / "b.keras")

    holdfast("convert", tmp_path / "b.keras", tmp_path / "b.h5", "--like", file)

    shown = json.loads(holdfast("inspect", tmp_path / "b.h5", "--json"))
    assert shown["metadata"]["step"] == 43
    holdfast("convert", tmp_path / "b.h5", tmp_path / "c.keras")
    last = keras.saving.load_model(tmp_path / "c.keras")
    assert_same_list(values(last), values(model))
    state = [np.asarray(variable) for variable in model.optimizer.variables]
    found = [np.asarray(variable) for variable in last.optimizer.variables]
    assert_same_list(found[2:], state[2:])
