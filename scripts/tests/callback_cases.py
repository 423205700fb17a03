#!/usr/bin/env python3
"""Writes what Keras's EarlyStopping and ReduceLROnPlateau decide for made-up means of epochs.

    KERAS_BACKEND=numpy python3 scripts/tests/callback_cases.py     (needs Keras, as tests/interop does)

tests/unit/callbacks compares ours with them. The file is tests/unit/callbacks/reference/keras_callbacks.json: for each
case the options, the values of "val_loss", and either the number of epochs until the stop (0: none) and the epoch
whose weights are restored, or the learning rate after each epoch.
"""

import json
import random
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np

OUT = Path(__file__).resolve().parents[2] / "tests/unit/callbacks/reference/keras_callbacks.json"
EPOCHS = 14
CASES = 24


def values_of(draw, first=0):
    """Falling on the whole, with plateaus and, in some cases, a NaN after epoch `first`. A first value that is NaN stays
    the best in Keras, so that nothing ever improves; Holdfast waits for a number."""
    value, values = 2.0, []
    for epoch in range(EPOCHS):
        value += draw.choice([-0.3, -0.05, 0.0, 0.0, 0.1])
        is_nan = epoch > first and draw.random() < 0.05
        values.append(None if is_nan else round(value, 3))
    return values


def logs_of(value):
    return {"val_loss": float("nan") if value is None else value}


class Optimizer:
    """Keeps its rate as Keras does, in float32."""

    def __init__(self, rate):
        self.learning_rate = rate

    def __setattr__(self, name, value):
        object.__setattr__(self, name, np.float32(value))


class EpochModel:
    """Its weights are the number of the epoch."""

    def __init__(self):
        self.stop_training, self.epoch, self.restored = False, 0, None

    def get_weights(self):
        return self.epoch

    def set_weights(self, weights):
        self.restored = weights


def early_stopping(draw):
    options = {
        "min_delta": draw.choice([0.0, 0.1]),
        "patience": draw.choice([0, 1, 2, 4]),
        "baseline": draw.choice([None, None, 1.5]),
        "start_from_epoch": draw.choice([0, 0, 3]),
        "mode": draw.choice(["min", "max"]),
    }
    callback = keras.callbacks.EarlyStopping(monitor="val_loss", restore_best_weights=True, **options)
    model = EpochModel()
    callback.set_model(model)
    callback.on_train_begin()
    values = values_of(draw, options["start_from_epoch"])
    epochs_until_stop = 0
    for epoch, value in enumerate(values):
        model.epoch = epoch
        callback.on_epoch_end(epoch, logs_of(value))
        if model.stop_training:
            epochs_until_stop = epoch + 1
            break
    callback.on_train_end()
    return {
        "options": options,
        "values": values,
        "epochs_until_stop": epochs_until_stop,
        "restored_epoch": model.restored,
    }


def reduce_lr(draw):
    options = {
        "factor": draw.choice([0.5, 0.1, 0.0]),
        "patience": draw.choice([1, 2, 3]),
        "min_delta": draw.choice([0.0, 1e-4, 0.1]),
        "cooldown": draw.choice([0, 0, 1, 3]),
        "min_lr": draw.choice([0.0, 0.02]),
        "mode": draw.choice(["min", "max"]),
    }
    callback = keras.callbacks.ReduceLROnPlateau(monitor="val_loss", **options)
    callback.set_model(SimpleNamespace(optimizer=Optimizer(0.1)))
    callback.on_train_begin()
    values, rates = values_of(draw), []
    for epoch, value in enumerate(values):
        callback.on_epoch_end(epoch, logs_of(value))
        rates.append(float(np.float32(callback.model.optimizer.learning_rate)))
    return {"options": options, "values": values, "rates": rates}


def main():
    draw = random.Random(1)
    cases = {
        "EarlyStopping": [early_stopping(draw) for _ in range(CASES)],
        "ReduceLROnPlateau": [reduce_lr(draw) for _ in range(CASES)],
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(cases) + "\n")
    print(f"{OUT}: Keras {keras.__version__}")


if __name__ == "__main__":
    main()
