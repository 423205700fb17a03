"""Keras loads its own files after Holdfast has read and written them, bit for bit, for many kinds of layers."""

import keras
import numpy as np
import pytest
from keras import layers

from keras_support import FORMS, SUFFIXES, arrays, assert_same_bits, load, program, save, scramble, values


def functional(shape, *stack):
    inputs = keras.Input(shape)
    outputs = inputs
    for layer in stack:
        outputs = layer(outputs)
    return keras.Model(inputs, outputs)


def attention():
    inputs = keras.Input((5, 6))
    return keras.Model(inputs, layers.MultiHeadAttention(2, 3, name="attention")(inputs, inputs))


def nested():
    encoder = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="hidden"), layers.BatchNormalization()],
                               name="encoder")
    head = functional((3,), layers.Dense(2, use_bias=False, name="out"))
    return functional((4,), layers.Dense(4), encoder, layers.Dropout(0.5), head, layers.Dense(2))


def frozen():
    model = functional((4,), layers.Dense(3), layers.BatchNormalization(), layers.Dense(2))
    model.layers[1].trainable = False
    return model


MODELS = {
    "Dense": lambda: functional((4,), layers.Dense(3), layers.Dense(2, use_bias=False)),
    "Sequential": lambda: keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dense(2)], name="net"),
    "EinsumDense": lambda: functional((4, 3), layers.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d")),
    "Conv1D": lambda: functional((8, 3), layers.Conv1D(2, 3)),
    "Conv2D": lambda: functional((6, 6, 3), layers.Conv2D(2, (3, 2)), layers.Conv2D(3, 1, use_bias=False)),
    "Conv3D": lambda: functional((4, 4, 4, 1), layers.Conv3D(2, 2)),
    "Conv2DTranspose": lambda: functional((4, 4, 2), layers.Conv2DTranspose(3, 2)),
    "DepthwiseConv2D": lambda: functional((5, 5, 3), layers.DepthwiseConv2D(2, depth_multiplier=2)),
    "SeparableConv2D": lambda: functional((5, 5, 3), layers.SeparableConv2D(4, 2)),
    "BatchNormalization": lambda: functional((4,), layers.BatchNormalization(), layers.BatchNormalization(scale=False),
                                             layers.BatchNormalization(center=False)),
    "LayerNormalization": lambda: functional((4,), layers.LayerNormalization(),
                                             layers.LayerNormalization(center=False)),
    "GroupNormalization": lambda: functional((3, 3, 4), layers.GroupNormalization(2)),
    "Embedding": lambda: functional((7,), layers.Embedding(11, 3)),
    "SimpleRNN": lambda: functional((5, 4), layers.SimpleRNN(3)),
    "LSTM": lambda: functional((5, 4), layers.LSTM(3)),
    "GRU": lambda: functional((5, 4), layers.GRU(3, reset_after=True)),
    "ConvLSTM1D": lambda: functional((3, 6, 2), layers.ConvLSTM1D(2, 3)),
    "Bidirectional": lambda: functional((5, 4), layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
                                        layers.Bidirectional(layers.GRU(2), merge_mode="sum")),
    "TimeDistributed": lambda: functional((5, 4), layers.TimeDistributed(layers.Dense(3))),
    "MultiHeadAttention": attention,
    "PReLU": lambda: functional((4,), layers.PReLU()),
    "nested": nested,
    "frozen": frozen,
    "twelve_of_a_kind": lambda: functional((4,), *[layers.Dense(2, name=f"z{12 - i}") for i in range(12)]),
}


@pytest.mark.parametrize("kind", MODELS)
def test_keras_loads_what_it_wrote_after_holdfast_read_and_wrote_it(kind, tmp_path):
    model = MODELS[kind]()
    scramble(model, seed=1)
    expected = values(model)
    for form in FORMS:
        file, ours, back = save(model, tmp_path, form), tmp_path / "ours.h5", tmp_path / ("back" + SUFFIXES[form])

        program("read", file, ours)
        program("write", ours, back, form)

        assert_same_bits(values(load(back, form, model)), expected)
        # Every weight occurs once, and every weight has a name.
        found = arrays(ours)
        assert sorted(value.tobytes() for value in found.values()) == sorted(value.tobytes() for value in expected)
        assert all(name.startswith("model/") for name in found), found.keys()
        if form != "weights":
            assert not any(name.split("/")[-1].isdigit() for name in found), found.keys()
        for path in (ours, back):
            path.unlink()


@pytest.mark.parametrize("kind", MODELS)
def test_keras_loads_one_form_that_holdfast_made_of_another(kind, tmp_path):
    model = MODELS[kind]()
    scramble(model, seed=2)
    expected = values(model)
    ours = tmp_path / "ours.h5"
    for source in ("archive", "legacy_model"):
        program("read", save(model, tmp_path, source), ours)
        for form in FORMS:
            back = tmp_path / ("back" + SUFFIXES[form])

            program("write", ours, back, form)

            assert_same_bits(values(load(back, form, model)), expected)
            back.unlink()
            scramble(model, seed=2)
        ours.unlink()


@pytest.mark.parametrize("kind", MODELS)
def test_an_archive_and_a_whole_legacy_file_give_the_same_names(kind, tmp_path):
    model = MODELS[kind]()
    scramble(model, seed=3)
    program("read", save(model, tmp_path, "archive"), tmp_path / "archive.h5")
    program("read", save(model, tmp_path, "legacy_model"), tmp_path / "legacy.h5")

    archive, legacy = arrays(tmp_path / "archive.h5"), arrays(tmp_path / "legacy.h5")

    assert archive.keys() == legacy.keys()
    assert all(archive[name].tobytes() == legacy[name].tobytes() for name in archive)


def test_layers_have_their_own_names_where_the_file_has_a_configuration(tmp_path):
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="first"), layers.BatchNormalization(name="norm")])
    program("read", save(model, tmp_path, "archive"), tmp_path / "archive.h5")
    program("read", save(model, tmp_path, "weights"), tmp_path / "weights.h5")

    assert sorted(arrays(tmp_path / "archive.h5")) == [
        "model/first/bias", "model/first/kernel", "model/norm/beta", "model/norm/gamma", "model/norm/moving_mean",
        "model/norm/moving_variance"]
    assert sorted(arrays(tmp_path / "weights.h5")) == [
        "model/batch_normalization/beta", "model/batch_normalization/gamma", "model/batch_normalization/moving_mean",
        "model/batch_normalization/moving_variance", "model/dense/bias", "model/dense/kernel"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_of_other_types_keep_their_bits(dtype, tmp_path):
    model = functional((4,), layers.Dense(3, dtype=dtype), layers.LayerNormalization(dtype=dtype))
    scramble(model, seed=4)
    expected = values(model)
    for form in ("weights", "archive"):
        ours, back = tmp_path / f"{form}.h5", tmp_path / ("back" + SUFFIXES[form])

        program("read", save(model, tmp_path, form), ours)
        program("write", ours, back, form)

        assert_same_bits(values(load(back, form, model)), expected)


@keras.saving.register_keras_serializable("tests")
class Scale(layers.Layer):
    def build(self, shape):
        self.factors = self.add_weight(shape=(shape[-1],), name="factors")
        self.count = self.add_weight(shape=(), dtype="int32", trainable=False, name="count")

    def call(self, inputs):
        return inputs * self.factors


def test_an_unknown_class_keeps_numbers_and_survives(tmp_path):
    model = functional((4,), layers.Dense(3, name="before"), Scale(name="mine"))
    scramble(model, seed=5)
    expected = values(model)
    for form in FORMS:
        file, ours, back = save(model, tmp_path, form), tmp_path / f"{form}.h5", tmp_path / ("back" + SUFFIXES[form])

        program("read", file, ours)
        program("write", ours, back, form)

        assert_same_bits(values(load(back, form, model)), expected)
        back.unlink()
    assert "model/mine/0" in arrays(tmp_path / "archive.h5")
    assert "model/scale/1" in arrays(tmp_path / "weights.h5")
    assert "model/mine/factors" in arrays(tmp_path / "legacy_weights.h5")
    message = program("write", tmp_path / "archive.h5", tmp_path / "no.h5", "legacy_model", fails=True)
    assert "\"mine\"" in message and "Scale" in message


def test_other_files_are_refused_as_not_keras(tmp_path):
    (tmp_path / "text.keras").write_text("PK is how it starts\n")
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))

    assert program("read", tmp_path / "text.keras", tmp_path / "out.h5", fails=True).startswith("invalid_file: ")
    message = program("read", tmp_path / "arrays.npz", tmp_path / "out.h5", fails=True)
    assert "a.npy" in message or "config.json" in message
    assert program("read", tmp_path / "nothing.h5", tmp_path / "out.h5", fails=True).startswith("not_found: ")
