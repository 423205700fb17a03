#!/usr/bin/env python3
"""constraint_cases.py: writes tests/unit/nn/reference/constraints.json, weights that Keras constrains in float64.

A case has the constraint as our text, the shape of the weights, and the weights before and afterwards.

Packages: keras and jax, in the versions of tests/interop/requirements.txt.
"""

import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"
import keras
import numpy as np
from keras import constraints

keras.config.set_floatx("float64")
FILE = pathlib.Path(__file__).resolve().parents[2] / "tests/unit/nn/reference/constraints.json"
# Our text, Keras's constraint, and the shape of the weights. Numbers are exact in f32.
CASES = [
    ("max_norm(2)", constraints.MaxNorm(), (9, 4)),
    ("max_norm(0.5,[0,1,2])", constraints.MaxNorm(0.5, [0, 1, 2]), (2, 3, 2, 4)),
    ("max_norm(0.5,[1])", constraints.MaxNorm(0.5, 1), (3, 2, 4)),
    ("non_neg()", constraints.NonNeg(), (3, 5)),
    ("unit_norm()", constraints.UnitNorm(), (7,)),
    ("unit_norm([-1])", constraints.UnitNorm(-1), (4, 6)),
    ("min_max_norm(0,1,1)", constraints.MinMaxNorm(), (5, 3)),
    ("min_max_norm(1.5,1.75,0.25,[0,2])", constraints.MinMaxNorm(1.5, 1.75, 0.25, [0, 2]), (3, 2, 4)),
]


def case(number, text, constraint, shape):
    weights = np.random.default_rng(number).uniform(-1, 1, shape).astype(np.float32).astype(np.float64)
    after = np.asarray(constraint(keras.ops.convert_to_tensor(weights)))
    assert after.dtype == np.float64, after.dtype
    return {"constraint": text, "shape": list(shape), "weights": weights.ravel().tolist(),
            "expected": after.ravel().tolist()}


def main():
    cases = [case(number, *one) for number, one in enumerate(CASES)]
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases) + "\n]\n")


if __name__ == "__main__":
    main()
