"""Each kind of layer, and each activation, computes in Holdfast what it does in Keras, and comes back to Keras."""

import json

import h5py
import hdf5plugin  # noqa: F401  registers the zstd filter
import keras
import numpy as np
import pytest
from keras import initializers, layers

from convert_test import holdfast
from keras_graphs_test import fill, inputs_of, predict, savepoint
from keras_savepoint_test import pack
from keras_support import arrays, assert_same_bits, predicted_by_holdfast, program, save, values

SIGNAL, IMAGE, VOLUME = (9, 4), (7, 6, 4), (5, 4, 6, 2)

# Layers by the shape of a sample of their input. Outputs are flattened and joined, so that one model has many layers.
KINDS = {
    SIGNAL: [
        layers.Conv1D(6, 3, strides=2, padding="causal", groups=2, activation="elu"),
        layers.Conv1D(3, 2, dilation_rate=2, use_bias=False, activation="mish"),
        layers.Conv1DTranspose(3, 3, strides=2, padding="same"),
        layers.Conv1DTranspose(2, 2, strides=3, output_padding=2),
        layers.DepthwiseConv1D(3, depth_multiplier=2, padding="same", activation="selu"),
        layers.SeparableConv1D(5, 3, depth_multiplier=2, activation="hard_silu"),
        layers.MaxPooling1D(3, strides=2, padding="same"), layers.AveragePooling1D(2),
        layers.GlobalAveragePooling1D(), layers.GlobalMaxPooling1D(keepdims=True), layers.AdaptiveAveragePooling1D(4),
        layers.AdaptiveMaxPooling1D(3), layers.UnitNormalization(), layers.UnitNormalization(axis=[1, 2]),
        layers.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de", activation="tanh"),
        layers.EinsumDense("abc,bd->adc", (5, None)), layers.EinsumDense("...x,xy->...y", 3, bias_axes="y"),
        layers.ZeroPadding1D((2, 1)), layers.Cropping1D((1, 3)), layers.UpSampling1D(3),
        layers.GroupNormalization(2), layers.GroupNormalization(-1, scale=False, epsilon=0.01),
        layers.LayerNormalization(scale=False), layers.LayerNormalization(axis=[1, 2], gamma_initializer="zeros"),
        layers.RMSNormalization(epsilon=0.01),
        layers.BatchNormalization(scale=False), layers.BatchNormalization(center=False, momentum=0.5),
        layers.BatchNormalization(scale=False, center=False),
        layers.Normalization(mean=[0.5, 1, 2, -1], variance=[1, 2, 3, 4]), layers.Normalization(axis=None),
        layers.Normalization(axis=(1, 2), invert=True), layers.Normalization(axis=None, mean=0.5, variance=4),
        layers.ReLU(1, 0.25, 0.125), layers.LeakyReLU(), layers.ELU(0.5), layers.PReLU(), layers.PReLU(shared_axes=[1]),
        layers.Softmax(axis=1), layers.Softmax(), layers.Permute((2, 1)), layers.Reshape((3, -1)),
        layers.Dropout(0.5), layers.AlphaDropout(0.25), layers.GaussianDropout(0.25), layers.GaussianNoise(0.5),
        layers.SpatialDropout1D(0.5), layers.Rescaling(2, 0.5),
    ],
    IMAGE: [
        layers.Conv2D(6, (3, 2), strides=(2, 2), groups=2, activation="leaky_relu"),
        layers.Conv2DTranspose(3, (2, 3), strides=2, activation="softsign"),
        layers.Conv2DTranspose(2, 3, strides=(2, 2), padding="same", output_padding=1),
        layers.DepthwiseConv2D((2, 3), depth_multiplier=2, activation="relu6"),
        layers.SeparableConv2D(3, 2, padding="same", use_bias=False), layers.MaxPooling2D(), layers.AveragePooling2D(3),
        layers.ZeroPadding2D(2), layers.Cropping2D(1), layers.UpSampling2D(2), layers.UpSampling2D((3, 2), interpolation="bilinear"),
        layers.GlobalMaxPooling2D(),
        layers.AdaptiveAveragePooling2D((3, 2)), layers.AdaptiveMaxPooling2D(4),
        layers.GroupNormalization(4), layers.SpatialDropout2D(0.25), layers.Dense(3, activation=layers.LeakyReLU(0.5)),
    ],
    VOLUME: [
        layers.Conv3D(3, (2, 3, 2), padding="same", activation="tanh_shrink"),
        layers.Conv3DTranspose(2, 2, strides=2), layers.MaxPooling3D(), layers.AveragePooling3D((2, 1, 2)),
        layers.GlobalAveragePooling3D(), layers.GlobalMaxPooling3D(), layers.ZeroPadding3D(1), layers.Cropping3D(((1, 0), (0, 1), (2, 1))),
        layers.UpSampling3D((1, 2, 2)), layers.SpatialDropout3D(0.5), layers.AdaptiveAveragePooling3D((2, 1, 3)),
        layers.AdaptiveMaxPooling3D(2),
    ],
}
ACTIVATIONS = ["linear", "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "softplus", "softsign",
               "sigmoid", "tanh", "softmax", "hard_sigmoid", "hard_silu", "hard_tanh", "tanh_shrink", "soft_shrink",
               "hard_shrink", "exponential", "log_sigmoid", "mish", "log_softmax", "swish", "squareplus",
               "sparse_plus", "sparse_sigmoid"]


def joined(shape, parts):
    x = keras.Input(shape, name="x")
    return keras.Model(x, layers.Concatenate()([layers.Flatten()(part(x)) for part in parts]))


def fresh(layer):
    return layer.__class__.from_config(layer.get_config())


def activations():
    return joined((5,), [layers.Activation(name) for name in ACTIVATIONS] + [
        layers.Dense(3, activation=name) for name in ACTIVATIONS])


def merged():
    x = keras.Input((6,), name="x")
    left, right = layers.Dense(4)(x), layers.Dense(4)(x)
    rows = layers.RepeatVector(3)(left)
    return keras.Model(x, layers.Concatenate()([
        layers.Flatten()(part) for part in (
            layers.Dot(1)([left, right]), layers.Dot((2, 1), normalize=True)([rows, right]),
            layers.Dot((2, 2))([rows, rows]), layers.Average()([left, right]), layers.Maximum()([left, right]),
            layers.Minimum()([left, right]), layers.Subtract()([left, right]), layers.Multiply()([left, right]))]))


def recurrent():
    x = keras.Input((6, 4), name="x")
    _, *states = layers.LSTM(3, return_state=True)(x)
    _, *both = layers.Bidirectional(layers.GRU(2, return_state=True), name="both")(x)
    return keras.Model(x, layers.Concatenate()([
        layers.Flatten()(part) for part in (
            layers.LSTM(3)(x, initial_state=states), layers.LSTM(2, return_sequences=True, go_backwards=True)(x),
            layers.GRU(3, return_sequences=True, activation="relu")(x), layers.GRU(2, use_bias=False)(x),
            layers.SimpleRNN(2, activation="linear", unroll=True)(x),
            layers.LSTM(2, unit_forget_bias=False, recurrent_activation="tanh")(x),
            layers.GRU(3, reset_after=False)(x), layers.GRU(2, reset_after=False, use_bias=False, recurrent_dropout=0.25)(x),
            layers.LSTM(3, dropout=0.25, recurrent_dropout=0.5)(x), layers.SimpleRNN(2, recurrent_dropout=0.5)(x),
            layers.Bidirectional(layers.GRU(2, reset_after=False, return_sequences=True))(x),
            layers.Bidirectional(layers.LSTM(2, return_sequences=True))(x),
            layers.Bidirectional(layers.SimpleRNN(3), merge_mode="ave")(x), *both)]))


def attentions():
    x = keras.Input((6, 4), name="x")
    y = layers.Dense(3)(x[:, :5])
    return keras.Model(x, layers.Concatenate()([
        layers.Flatten()(part) for part in (
            layers.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True),
            layers.MultiHeadAttention(2, 3, value_dim=2, sliding_window=2, use_bias=False)(query=x, value=y),
            layers.GroupQueryAttention(3, 4, 2)(x, x), layers.Attention(use_scale=True)([x, x]),
            layers.Attention(score_mode="concat")([x, x, x]), layers.AdditiveAttention()([x, x]),
            layers.AdditiveAttention(use_scale=False)([x, x], use_causal_mask=True))]))


def attention_scores():
    x = keras.Input((6, 4), name="x")
    y = layers.Dense(3)(x[:, :5])
    scored = {"return_attention_scores": True}
    # The second output of each, the first, and both.
    parts = [layers.MultiHeadAttention(2, 3)(x, y, use_causal_mask=True, **scored)[1],
             layers.GroupQueryAttention(3, 4, 2)(x, x, **scored)[1], layers.Attention()([x, x], **scored)[0],
             *layers.AdditiveAttention()([x, x], **scored), layers.Attention(score_mode="concat")([x, x], **scored)[1]]
    return keras.Model(x, layers.Concatenate()([layers.Flatten()(part) for part in parts]))


def distributed():
    x = keras.Input((3, 6, 5, 2), name="x")
    y = layers.TimeDistributed(layers.Conv2D(2, 3, activation="relu"), name="pictures")(x)
    z = layers.TimeDistributed(layers.Flatten())(y)
    z = layers.TimeDistributed(layers.Dense(4, activation="tanh"), name="numbers")(z)
    z = layers.TimeDistributed(layers.Dropout(0.5))(layers.TimeDistributed(layers.LayerNormalization())(z))
    rows = layers.Reshape((3, 30, 2))(x)
    return keras.Model(x, layers.Concatenate()([
        layers.Flatten()(part) for part in (
            y, z, layers.TimeDistributed(layers.BatchNormalization())(x), layers.TimeDistributed(layers.LSTM(2))(rows),
            layers.TimeDistributed(layers.Softmax(axis=1))(x), layers.TimeDistributed(layers.MaxPooling2D())(x))]))


MODELS = {"activations": activations, "merged": merged, "recurrent": recurrent, "attentions": attentions,
          "attention_scores": attention_scores, "distributed": distributed,
          **{f"{len(shape) - 1}d": lambda shape=shape, parts=parts: joined(shape, [fresh(part) for part in parts])
             for shape, parts in KINDS.items()}}


def fill_with_statistics(model, seed):
    fill(model, seed)
    for layer in model.layers:
        if isinstance(layer, layers.Normalization) and layer.input_mean is None:
            layer.adapt_variance.assign(np.abs(layer.adapt_variance) + 0.5)
            layer.finalize_state()


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_computes_the_same_on_both_sides_and_comes_back(kind, tmp_path):
    model = MODELS[kind]()
    fill_with_statistics(model, seed=1)
    inputs, expected = inputs_of(model)[0], predict(model)[0]

    holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "ours.h5")
    found = predicted_by_holdfast(tmp_path / "ours.h5", [inputs], tmp_path).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())

    # The file of Keras is written again as it was, and a savepoint of the model as one of its own.
    holdfast("convert", tmp_path / "ours.h5", tmp_path / "again.keras")
    np.testing.assert_allclose(predict(keras.saving.load_model(tmp_path / "again.keras"))[0], expected, rtol=1e-6)
    trained = savepoint_of(tmp_path / "ours.h5", tmp_path)
    program("write", trained, tmp_path / "back.keras", "archive")
    back = keras.saving.load_model(tmp_path / "back.keras")
    np.testing.assert_allclose(predict(back)[0], expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())

    # And Keras's values go into the savepoint again.
    program("savepoint", tmp_path / "back.keras", trained, tmp_path / "more.h5")
    holdfast("diff", trained, tmp_path / "more.h5")


def test_a_normalization_without_scale_or_center_has_no_more_weights_than_in_keras(tmp_path):
    options = [{"scale": scale, "center": center} for scale in (True, False) for center in (True, False)]
    model = keras.Sequential([keras.Input((5, 3)), *[
        layers.BatchNormalization(name=f"n{place}", **chosen) for place, chosen in enumerate(options)]])
    fill(model, seed=6)

    said = holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "ours.h5")
    trained = savepoint_of(tmp_path / "ours.h5", tmp_path)
    program("write", trained, tmp_path / "back.keras", "archive")

    assert "scale" not in said and "center" not in said, said
    assert set(arrays(trained)) == {f"model/{layer.name}/{weight.name}"
                                    for layer in model.layers for weight in layer.weights}
    back = keras.saving.load_model(tmp_path / "back.keras")
    for layer, chosen in zip(back.layers, options, strict=True):
        assert {key: layer.get_config()[key] for key in chosen} == chosen
    assert_same_bits(values(back), values(model))


def savepoint_of(file, folder):
    """What a run would save of the model in a converted file."""
    with h5py.File(file, "r") as opened:
        metadata = json.loads(bytes(opened["metadata"][()]))
    content = {name: value for name, value in arrays(file).items()
               if name.startswith("model/") and value.dtype == np.float32}
    pack(folder / "trained.h5", {"kind": "savepoint", "holdfast": "0.1", "graph": metadata["graph"], "step": 0,
                                 "configuration": {}}, content)
    return folder / "trained.h5"


def test_integers_reach_an_embedding_from_inputs_of_both_types(tmp_path):
    user, item = keras.Input((2,), dtype="uint16", name="user"), keras.Input((3,), name="item")
    traits = keras.Input((4,), dtype="int32", name="traits")
    both = layers.Concatenate()([
        layers.Flatten()(layers.Embedding(20, 3)(user)), layers.Flatten()(layers.Embedding(9, 2)(item)),
        layers.Dense(2)(traits), layers.Rescaling(0.5)(traits)])
    model = keras.Model([user, item, traits], layers.Dense(1)(both))
    fill(model, seed=2)
    generator = np.random.default_rng(3)
    inputs = [generator.integers(0, 9, (5, n)).astype(t) for n, t in ((2, "u2"), (3, "f4"), (4, "i4"))]

    said = holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "ours.h5")
    program("write", savepoint_of(tmp_path / "ours.h5", tmp_path), tmp_path / "back.keras", "archive")

    assert "input \"item\" is of float32 in Keras; Holdfast takes its ids as i32" in said
    back = keras.saving.load_model(tmp_path / "back.keras")
    assert [value.dtype for value in back.inputs] == ["uint16", "int32", "int32"]
    inputs[1] = inputs[1].astype("i4")
    np.testing.assert_allclose(np.asarray(back(inputs)), np.asarray(model(inputs)), rtol=1e-6)


def both_ways(tmp_path, model, inputs):
    """The model that Keras loads after Holdfast has read and written it, and what convert said."""
    said = holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "ours.h5")
    program("write", savepoint_of(tmp_path / "ours.h5", tmp_path), tmp_path / "back.keras", "archive")
    back = keras.saving.load_model(tmp_path / "back.keras")
    found, expected = keras.tree.flatten(back(inputs)), keras.tree.flatten(model(inputs))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
    return back, said


@pytest.mark.parametrize("ties", [True, False])
def test_a_reversible_embedding_comes_back_with_both_directions(ties, tmp_path):
    ids = keras.Input((4,), dtype="int32", name="ids")
    words = layers.ReversibleEmbedding(9, 3, tie_weights=ties, logit_soft_cap=2.0, name="words")
    model = keras.Model(ids, words(layers.Dense(3)(words(ids)), reverse=True))
    fill(model, seed=4)
    inputs = np.random.default_rng(5).integers(0, 9, (5, 4)).astype("i4")

    back, _ = both_ways(tmp_path, model, inputs)

    assert len(back.weights) == len(model.weights) == (3 if ties else 4)


def test_names_of_outputs_come_back(tmp_path):
    x = keras.Input((3,), name="x")
    model = keras.Model(x, {"zeta": layers.Dense(1, name="d")(x), "alpha": layers.Dense(2, name="e")(x)})
    fill(model, seed=7)

    back, _ = both_ways(tmp_path, model, np.ones((4, 3), "f4"))

    assert set(back(np.ones((4, 3), "f4"))) == {"zeta", "alpha"}


def test_parts_stacks_and_comparisons_compute_the_same(tmp_path):
    ops = keras.ops
    x = keras.Input((4, 6), name="x")
    parts = [x[:, 1:3], x[:, 0, 2:], x[..., -1], ops.stack([x, 2 * x], axis=-1), ops.stack([x, 2 * x], axis=1),
             ops.stack([x, 2 * x], axis=2), ops.where(ops.less(x, 0.5), x, 0.25 * x)]
    model = keras.Model(x, layers.Concatenate()([layers.Flatten()(part) for part in parts]))
    inputs, expected = inputs_of(model)[0], predict(model)[0]

    holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "ours.h5")
    found = predicted_by_holdfast(tmp_path / "ours.h5", [inputs], tmp_path).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_masked_steps_and_keys_are_left_out_on_both_sides(tmp_path):
    x = keras.Input((5, 8), name="x")
    steps = keras.ops.less(x[:, :, 0], 0.5)
    # Few enough that each query keeps a key: without one Keras takes all of them, and Holdfast none.
    pairs = keras.ops.less(x[:, :, 1:6], 1)
    outputs = [
        layers.LSTM(3, return_sequences=True, name="lstm")(x, mask=steps),
        layers.Bidirectional(layers.GRU(2, return_sequences=True), name="both_ways")(x, mask=steps),
        layers.SimpleRNN(2, return_sequences=True, name="rnn")(x, mask=steps),
        layers.MultiHeadAttention(2, 4, name="keys")(x, x, value_mask=steps),
        layers.MultiHeadAttention(2, 4, name="pairs")(x, x, attention_mask=pairs),
    ]  # fmt: skip
    model = keras.Model(x, layers.Concatenate()(outputs))
    fill(model, seed=1)
    inputs, expected = inputs_of(model)[0], predict(model)[0]
    assert (inputs[:, :, 0] < 0.5).any() and (inputs[:, :, 0] >= 0.5).any() and (inputs[:, :, 1:6] >= 1).any()

    holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "ours.h5")
    found = predicted_by_holdfast(tmp_path / "ours.h5", [inputs], tmp_path).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_initializers_of_normalizations_come_back(tmp_path):
    layer = layers.BatchNormalization(gamma_initializer="zeros", beta_initializer=initializers.Constant(0.5),
                                      moving_mean_initializer="ones", moving_variance_initializer=initializers.Constant(2))
    x = keras.Input((3,))
    model = keras.Model(x, layer(x))
    fill(model, seed=8)

    back, said = both_ways(tmp_path, model, np.ones((2, 3), "f4"))

    assert "note:" not in said, said
    for key in ("gamma", "beta", "moving_mean", "moving_variance"):
        found, expected = (one.get_config()[f"{key}_initializer"] for one in (back.layers[-1], layer))
        assert found == expected


def test_initializers_have_the_definitions_of_keras(tmp_path):
    given = [initializers.HeNormal(), initializers.GlorotNormal(), initializers.LecunUniform(),
             initializers.RandomUniform(-0.25, 0.5), initializers.TruncatedNormal(0.5, 0.25), initializers.Orthogonal(2),
             initializers.Constant(0.5), initializers.VarianceScaling(3, "fan_out", "untruncated_normal")]
    x = y = keras.Input((4,))
    for initializer in given:
        y = layers.Dense(4, kernel_initializer=initializer)(y)
    file, graph, _ = savepoint(keras.Model(x, y), tmp_path)

    assert [layer["config"]["kernel_initializer"] for layer in graph["layers"]] == [
        "truncated_he_normal", "truncated_glorot_normal", "lecun_uniform", "uniform(-0.25,0.5)",
        "truncated_normal(0.25,0.5)", "orthogonal(2)", "constant(0.5)", "variance_scaling(3,fan_out,untruncated_normal)"]
    program("write", file, tmp_path / "back.keras", "archive")
    # Both files give each initializer the same numbers, which Keras would draw with.
    back = [layer for layer in keras.saving.load_model(tmp_path / "back.keras").layers
            if isinstance(layer, layers.Dense)]
    for layer, initializer in zip(back, given, strict=True):
        found, expected = layer.kernel_initializer.get_config(), initializer.get_config()
        assert isinstance(layer.kernel_initializer, type(initializer))
        assert {**found, "seed": None} == {**expected, "seed": None}
