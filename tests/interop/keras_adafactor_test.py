"""The state of Adafactor, whose factors have other shapes in a savepoint, goes to Keras and back."""

import keras
import numpy as np
import pytest
from keras import layers, optimizers

from keras_savepoint_test import pack
from keras_support import SUFFIXES, arrays, assert_same_bits, program, save

CONFIGURATION = {"kind": "adafactor", "learning_rate": 0.25, "beta_2_decay": -0.75, "epsilon_1": 1e-6,
                 "epsilon_2": 0.125, "clip_threshold": 0.5, "weight_decay": 0.0}


def in_keras():
    """Kernels of two and of four axes, which are factored, and biases, which are not."""
    model = keras.Sequential([keras.Input((5, 6, 2)), layers.Conv2D(3, (2, 3), name="first"),
                              layers.Flatten(name="flatten"), layers.Dense(4, name="scores")])
    config = {name: value for name, value in CONFIGURATION.items() if name not in ("kind", "weight_decay")}
    model.compile(optimizers.Adafactor(**config), keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def graph():
    dense = {"kernel_initializer": "glorot_uniform", "bias_initializer": "zeros", "use_bias": True}
    return {"format": "holdfast.sequential", "version": 1, "input_shape": [5, 6, 2], "layers": [
        {"kind": kind, "name": name, "config": config} for kind, name, config in [
            ("Conv2D", "first", {"filters": 3, "kernel_size": [2, 3], "strides": [1, 1], "padding": "valid",
                                 "activation": "linear", **dense}),
            ("Flatten", "flatten", {}),
            ("Dense", "scores", {"units": 4, "activation": "linear", **dense})]]}


def factors_of(model):
    """The three variables that Keras keeps for each weight, by the name of its array."""
    names = [f"{layer.name}/{weight.name}" for layer in model.layers for weight in layer.trainable_weights]
    variables = [keras.ops.convert_to_numpy(variable).copy() for variable in model.optimizer.variables[2:]]
    assert len(variables) == 3 * len(names)
    return {name: variables[3 * place:3 * place + 3] for place, name in enumerate(names)}


def trained(model, gradients):
    for step in gradients:
        model.optimizer.apply([keras.ops.convert_to_tensor(one) for one in step], model.trainable_variables)
    return model


def drawn_gradients(model, steps):
    generator = np.random.default_rng(5)
    return [[generator.normal(size=weight.shape).astype("f4") for weight in model.trainable_variables]
            for _ in range(steps)]


def expected_slots(model):
    """As Holdfast keeps them: each factor in the shape of the weight."""
    slots = {}
    for name, (rows, columns, velocity) in factors_of(model).items():
        if velocity.ndim < 2:
            slots["row_velocity", name], slots["column_velocity", name] = velocity, np.zeros_like(velocity)
        else:
            slots["row_velocity", name] = np.broadcast_to(rows[..., None], velocity.shape)
            slots["column_velocity", name] = np.broadcast_to(columns[..., None, :], velocity.shape)
    return {f"optimizer/{slot}/{name}": np.ascontiguousarray(value) for (slot, name), value in slots.items()}


def savepoint(path, model, slots, step):
    content = {f"model/{layer.name}/{weight.name}": keras.ops.convert_to_numpy(weight).astype("f4")
               for layer in model.layers for weight in layer.weights}
    metadata = {"kind": "savepoint", "holdfast": "0.1", "graph": graph(), "step": step, "epoch": 0, "batch": 0,
                "configuration": {"optimizer": CONFIGURATION, "loss": {"kind": "mean_squared_error"}, "metrics": [],
                                  "initial_weights": "drawn"}}
    pack(path, metadata, {**content, **slots})
    return path


@pytest.mark.parametrize("form", ["weights", "archive"])
def test_a_savepoint_takes_the_factors_of_keras(form, tmp_path):
    model = in_keras()
    trained(model, drawn_gradients(model, 4))
    zeros = {name: np.zeros_like(value) for name, value in expected_slots(model).items()}
    like = savepoint(tmp_path / "like.h5", in_keras(), zeros, step=0)

    program("savepoint", save(model, tmp_path, form), like, tmp_path / "ours.h5")

    found = arrays(tmp_path / "ours.h5")
    for name, value in expected_slots(model).items():
        assert found[name].tobytes() == value.tobytes(), name


@pytest.mark.parametrize("form", ["weights", "archive"])
def test_keras_goes_on_with_the_factors_of_a_savepoint(form, tmp_path):
    model = in_keras()
    gradients = drawn_gradients(model, 5)
    trained(model, gradients[:-1])
    file = savepoint(tmp_path / "ours.h5", model, expected_slots(model), step=4)

    program("write", file, tmp_path / ("model" + SUFFIXES[form]), form)
    loaded = in_keras()
    if form == "archive":
        loaded = keras.saving.load_model(tmp_path / "model.keras")
    else:
        loaded.load_weights(tmp_path / "model.weights.h5")

    for name, (rows, columns, velocity) in factors_of(loaded).items():
        expected_rows, expected_columns, expected_velocity = factors_of(model)[name]
        assert_same_bits([rows, columns], [expected_rows, expected_columns])
        # Keras rounds the product of the factors three times, and reads it only in the step that computes it anew.
        np.testing.assert_allclose(velocity, expected_velocity, rtol=2 ** -21)
    trained(model, gradients[-1:])
    trained(loaded, gradients[-1:])
    assert_same_bits([np.asarray(one) for one in loaded.trainable_variables],
                     [np.asarray(one) for one in model.trainable_variables])


def test_a_savepoint_before_its_first_step_becomes_an_optimizer_that_has_not_begun(tmp_path):
    model = in_keras()
    zeros = {name: np.zeros_like(value) for name, value in expected_slots(model).items()}
    file = savepoint(tmp_path / "ours.h5", model, zeros, step=0)

    program("write", file, tmp_path / "model.keras", "archive")

    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_same_bits([np.asarray(one) for one in loaded.optimizer.variables],
                     [np.asarray(one) for one in model.optimizer.variables])
