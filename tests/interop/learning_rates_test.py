"""Holdfast's schedules give the same rates as Keras's schedules with the same options."""

import json
import os
import subprocess

import numpy as np
from keras.optimizers import schedules

CLASSES = {
    "cosine_decay": schedules.CosineDecay,
    "cosine_decay_restarts": schedules.CosineDecayRestarts,
    "exponential_decay": schedules.ExponentialDecay,
    "inverse_time_decay": schedules.InverseTimeDecay,
    "piecewise_constant_decay": schedules.PiecewiseConstantDecay,
    "polynomial_decay": schedules.PolynomialDecay,
}


def computed():
    path = os.path.join(os.environ["HOLDFAST_BUILD"], "bin", "learning_rates_program")
    result = subprocess.run([path], capture_output=True, text=True, timeout=60, check=True)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_rates_are_those_of_keras():
    lines = computed()
    assert {line["configuration"]["kind"] for line in lines} == set(CLASSES)
    for line in lines:
        options = {key: value for key, value in line["configuration"].items() if key != "kind"}
        schedule = CLASSES[line["configuration"]["kind"]](**options)
        expected = [float(schedule(step)) for step in range(len(line["rates"]))]

        # Keras computes in float, with several roundings of 2^-24 of the largest rate; ours has one. Powers and cosines
        # of floats may be off by a few more.
        np.testing.assert_allclose(line["rates"], expected, rtol=2e-6, atol=2e-8, err_msg=str(line["configuration"]))
