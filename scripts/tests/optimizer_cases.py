#!/usr/bin/env python3
"""optimizer_cases.py: writes twenty steps of Keras's optimizers in float64.

tests/unit/optim/reference/optimizers.json has steps of single arrays, and tests/unit/train/reference/averages.json those
that keep moving averages of the parameters.

A case has the configuration of our optimizer, its parameters before the steps, the gradients of each step, and the
parameters and slots afterwards, by our names of the slots.

Packages: keras and jax, in the versions of tests/interop/requirements.txt.
"""

import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"
import keras
import numpy as np
from keras import optimizers

keras.config.set_floatx("float64")
ELEMENTS, STEPS = 6, 20
UNIT = pathlib.Path(__file__).resolve().parents[2] / "tests/unit"

# A kind of ours, Keras's class, and options that both have.
KINDS = {"rmsprop": optimizers.RMSprop, "adagrad": optimizers.Adagrad, "adadelta": optimizers.Adadelta,
         "adamax": optimizers.Adamax, "nadam": optimizers.Nadam, "lion": optimizers.Lion,
         "sgd": optimizers.SGD, "adam": optimizers.Adam, "adamw": optimizers.AdamW, "lamb": optimizers.Lamb,
         "ftrl": optimizers.Ftrl, "schedule_free_adamw": optimizers.ScheduleFreeAdamW, "muon": optimizers.Muon,
         "adafactor": optimizers.Adafactor}
CASES = [
    ("rmsprop", {}),
    ("rmsprop", {"learning_rate": 0.01, "rho": 0.75, "momentum": 0.5, "weight_decay": 0.125}),
    ("rmsprop", {"learning_rate": 0.01, "centered": True, "epsilon": 0.01}),
    ("rmsprop", {"learning_rate": 0.01, "momentum": 0.875, "centered": True, "epsilon": 0.01, "weight_decay": 0.25}),
    ("adagrad", {}),
    ("adagrad", {"learning_rate": 0.1, "initial_accumulator_value": 0.5, "epsilon": 0.01, "weight_decay": 0.125}),
    ("adadelta", {"learning_rate": 1.0}),
    ("adadelta", {"learning_rate": 0.5, "rho": 0.75, "epsilon": 0.01, "weight_decay": 0.125}),
    ("adamax", {}),
    ("adamax", {"learning_rate": 0.01, "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.01, "weight_decay": 0.125}),
    ("nadam", {}),
    ("nadam", {"learning_rate": 0.01, "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.01, "weight_decay": 0.125}),
    ("lion", {}),
    ("lion", {"learning_rate": 0.01, "beta_1": 0.5, "beta_2": 0.75, "weight_decay": 0.125}),
    ("sgd", {"learning_rate": 0.01, "weight_decay": 0.125}),
    ("sgd", {"learning_rate": 0.01, "momentum": 0.875, "weight_decay": 0.125}),
    ("sgd", {"learning_rate": 0.01, "momentum": 0.875, "nesterov": True, "weight_decay": 0.125}),
    ("adam", {"learning_rate": 0.01, "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.01, "weight_decay": 0.125}),
    ("adam", {"learning_rate": 0.01, "beta_2": 0.5, "amsgrad": True, "weight_decay": 0.125}),
    ("adamw", {"learning_rate": 0.01, "beta_2": 0.5, "amsgrad": True}),
    ("ftrl", {}),
    ("ftrl", {"learning_rate": 0.25, "l1_regularization_strength": 0.5, "l2_regularization_strength": 0.25,
              "l2_shrinkage_regularization_strength": 0.125, "beta": 0.5, "weight_decay": 0.125}),
    ("ftrl", {"learning_rate": 0.25, "learning_rate_power": -0.75, "initial_accumulator_value": 1.0}),
    ("schedule_free_adamw", {}),
    ("schedule_free_adamw", {"learning_rate": 0.01, "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.01, "warmup_steps": 8,
                             "weight_decay": 0.125}),
    ("muon", {"shape": [3, 2]}),
    ("muon", {"shape": [2, 3], "learning_rate": 0.01, "momentum": 0.5, "nesterov": False, "weight_decay": 0.125}),
    ("muon", {"shape": [2, 3], "learning_rate": 0.01, "ns_steps": 2, "rms_rate": None}),
    ("muon", {"shape": [6], "learning_rate": 0.01, "adam_beta_1": 0.5, "adam_beta_2": 0.75, "adam_lr_ratio": 0.5,
              "adam_weight_decay": 0.125, "epsilon": 0.01}),
    ("lamb", {}),
    ("lamb", {"learning_rate": 0.01, "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.01, "weight_decay": 0.125}),
    ("adafactor", {}),
    ("adafactor", {"shape": [2, 3], "learning_rate": 0.5, "weight_decay": 0.125}),
    ("adafactor", {"shape": [1, 2, 3], "learning_rate": 0.1, "beta_2_decay": -0.5, "epsilon_1": 0.01, "epsilon_2": 1.0,
                   "clip_threshold": 0.5}),
    ("adafactor", {"shape": [3, 2, 1], "learning_rate": 0.1, "epsilon_1": 0.01}),
]
# Moving averages of the parameters, of all kinds, some of which overwrite them.
AVERAGES = [(kind, {"learning_rate": 0.01, "weight_decay": 0.125, "use_ema": True, "ema_momentum": 0.75} | more)
            for kind, more in zip(KINDS, [{}, {"ema_overwrite_frequency": 3}, {"ema_momentum": 0.5}] * 5)]


def as_float(value):
    """Options are f32 in our optimizers, and Keras gets the same numbers."""
    return value if value is None or isinstance(value, (bool, int)) else float(np.float32(value))


def options_of(kind, given):
    """Defaults that f32 does not have are given, too."""
    config = KINDS[kind]().get_config()
    names = {"learning_rate", "rho", "momentum", "epsilon", "centered", "beta_1", "beta_2", "initial_accumulator_value",
             "nesterov", "amsgrad", "warmup_steps", "learning_rate_power", "l1_regularization_strength",
             "l2_regularization_strength", "l2_shrinkage_regularization_strength", "beta", "adam_beta_1", "adam_beta_2",
             "adam_weight_decay", "adam_lr_ratio", "ns_steps", "rms_rate", "muon_a", "muon_b", "muon_c", "beta_2_decay",
             "epsilon_1", "epsilon_2", "clip_threshold"}
    options = {name: as_float(value) for name, value in config.items() if name in names}
    return options | {name: as_float(value) for name, value in given.items()}


def our_name(kind, slot):
    """The name of a slot: Keras's, but for Adam's and for averages."""
    adam = {"momentum": "m", "velocity": "v", "velocity_hat": "v_hat"} if kind in ("adam", "adamw") else {}
    return ({"average": "moving_average"} | adam).get(slot, slot)


def factors_of(optimizer, variable):
    """The slots of Adafactor, repeated along the axes that they lack."""
    if len(variable.shape) < 2:
        return {"row_velocity": optimizer._v[0].value, "column_velocity": np.zeros(variable.shape)}
    rows, columns = np.asarray(optimizer._r[0].value), np.asarray(optimizer._c[0].value)
    return {"row_velocity": np.broadcast_to(rows[..., None], variable.shape),
            "column_velocity": np.broadcast_to(columns[..., None, :], variable.shape)}


def case(number, kind, given):
    rng = np.random.default_rng(number)
    shape = given.pop("shape", [ELEMENTS])
    options = options_of(kind, given)
    parameters = rng.uniform(-1, 1, ELEMENTS).astype(np.float32)
    gradients = rng.uniform(-1, 1, (STEPS, ELEMENTS)).astype(np.float32)
    variable = keras.Variable(parameters.astype(np.float64).reshape(shape), name="w")
    optimizer = KINDS[kind](**options)
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient.astype(np.float64).reshape(shape))], [variable])
    assert variable.dtype == "float64", variable.dtype
    slots = {our_name(kind, state.path.split("/")[-1].removeprefix("w_")): np.asarray(state.value).reshape(-1).tolist()
             for state in optimizer.variables if state.shape == variable.shape}
    if kind == "adafactor":
        slots = {name: slot for name, slot in slots.items() if name == "moving_average"}
        slots |= {name: np.reshape(slot, -1).tolist() for name, slot in factors_of(optimizer, variable).items()}
    extents = {"shape": shape} if shape != [ELEMENTS] or kind == "muon" else {}
    return {"kind": kind, "options": options, **extents, "parameters": parameters.tolist(), "gradients": gradients.tolist(),
            "expected": np.asarray(variable.value).reshape(-1).tolist(), "slots": slots}


def main():
    for file, list_of_cases in (("optim/reference/optimizers.json", CASES), ("train/reference/averages.json", AVERAGES)):
        cases = [case(number, *one) for number, one in enumerate(list_of_cases)]
        (UNIT / file).write_text("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases) + "\n]\n")


if __name__ == "__main__":
    main()
