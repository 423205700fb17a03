#!/usr/bin/env python3
"""regularizer_cases.py: writes tests/unit/train/reference/regularizers.json, trainings with regularizers in Keras and float64.

A case has the regularizers of two dense layers as our texts, the weights before three epochs of SGD over whole batches,
and Keras's losses and weights.

Packages: keras and jax, in the versions of tests/interop/requirements.txt.
"""

import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"
import keras
import numpy as np

keras.config.set_floatx("float64")
FILE = pathlib.Path(__file__).resolve().parents[2] / "tests/unit/train/reference/regularizers.json"
SAMPLES, INPUTS, HIDDEN = 12, 3, 4
# The regularizers of the first layer's kernel and bias, and of the second layer's kernel; factors are exact in f32.
CASES = [({"l2": 0.0625}, None, None), ({"l1": 0.03125}, {"l2": 0.125}, None),
         ({"l1": 0.015625, "l2": 0.0625}, {"l1": 0.125}, {"l2": 0.25}),
         ({"factor": 0.5}, None, None), ({"factor": 0.25, "mode": "columns"}, None, {"factor": 1.0})]


def regularizer(given):
    if given is None:
        return None
    is_orthogonal = "factor" in given
    return keras.regularizers.OrthogonalRegularizer(**given) if is_orthogonal else keras.regularizers.L1L2(**given)


def text(given):
    if given is None:
        return ""
    if "factor" in given:
        return f"orthogonal({given['factor']},{given.get('mode', 'rows')})"
    return f"{'_'.join(given)}({','.join(str(factor) for factor in given.values())})"


def f32(array):
    return array.astype(np.float32).astype(np.float64)


def case(number, given):
    rng = np.random.default_rng(number)
    x, y = f32(rng.uniform(-1, 1, (SAMPLES, INPUTS))), f32(rng.uniform(-1, 1, (SAMPLES, 1)))
    model = keras.Sequential([
        keras.Input((INPUTS,)),
        keras.layers.Dense(HIDDEN, "tanh", kernel_regularizer=regularizer(given[0]), bias_regularizer=regularizer(given[1])),
        keras.layers.Dense(1, kernel_regularizer=regularizer(given[2]))])
    begin = [f32(rng.uniform(-1, 1, weight.shape)) for weight in model.weights]
    model.set_weights(begin)
    model.compile(keras.optimizers.SGD(0.125), "mse")
    losses = model.fit(x, y, batch_size=SAMPLES, epochs=3, shuffle=False, verbose=0).history["loss"]
    return {"regularizers": [text(one) for one in given], "x": x.ravel().tolist(), "y": y.ravel().tolist(),
            "begin": [weight.ravel().tolist() for weight in begin], "losses": losses,
            "evaluation": float(model.evaluate(x, y, batch_size=SAMPLES, verbose=0)),
            "end": [np.asarray(weight).ravel().tolist() for weight in model.get_weights()]}


def main():
    cases = [case(number, given) for number, given in enumerate(CASES)]
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases) + "\n]\n")


if __name__ == "__main__":
    main()
