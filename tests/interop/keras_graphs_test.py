"""Functional Keras models become graphs of Holdfast, and graphs of Holdfast become functional Keras models."""

import json

import keras
import numpy as np
import pytest
from keras import layers, ops

from convert_test import holdfast
from keras_savepoint_test import pack
from keras_support import (FORMS, SUFFIXES, arrays, assert_same_bits, load, predicted_by_holdfast, program, save,
                           scramble, values)


def residual():
    x = image = keras.Input((8, 8, 3), name="image")
    x = shortcut = layers.Conv2D(4, 3, padding="same", activation="relu", name="stem")(x)
    x = layers.Conv2D(4, 3, padding="same", use_bias=False, name="first")(x)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.ReLU(name="relu")(layers.Add(name="sum")([x, shortcut]))
    x = layers.MaxPooling2D(name="pool")(x)
    # The shorter branch comes first in the arguments and in depth, the longer one in the walk.
    y = layers.Conv2D(4, 1, strides=2, name="side")(shortcut)
    x = layers.Add()([y, layers.Conv2D(4, 3, padding="same", name="second")(x)])
    x = layers.GlobalAveragePooling2D(name="mean")(x)
    return keras.Model(image, layers.Dense(5, activation="softmax", name="scores")(x), name="residual")


def shared():
    left, right = keras.Input((6,), name="left"), keras.Input((6,), name="right")
    dense = layers.Dense(4, activation="tanh", name="shared")
    deeper = layers.Dense(6, name="deeper")
    # Calls at several depths, of which the deepest counts for the order of layers.
    x, y = dense(left), dense(deeper(deeper(right)))
    both = layers.Concatenate(name="both")([x, y])
    scores = layers.Dense(2, name="scores")(both)
    return keras.Model([left, right], [scores, layers.Dense(1, name="value")((x - y) * 2.0 + 1.0)])


def nested():
    inputs = keras.Input((6,))
    hidden = layers.Dense(4, name="hidden")(inputs)
    outputs = [layers.Add(name="sum")([hidden, layers.Dense(4, name="side")(inputs)]), hidden]
    encoder = keras.Model(inputs, outputs, name="encoder")
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="hidden"), layers.Dropout(0.5)], name="inner")
    head = keras.Sequential([keras.Input((4,)), layers.Dense(4, name="first"), inner], name="head")
    a, b = keras.Input((6,), name="a"), keras.Input((6,), name="b")
    p, q = encoder(a)
    r, _ = encoder(b)
    return keras.Model([a, b], [head(layers.Multiply()([p, r, q])), encoder(b)[1]], name="outer")


def images():
    x = inputs = keras.Input((6, 8, 2), name="image")
    x = layers.Rescaling(0.5, offset=-0.25)(x)
    x = layers.ZeroPadding2D(((1, 2), (0, 1)))(x)
    x = layers.Cropping2D(((1, 0), (1, 2)))(x)
    x = layers.UpSampling2D((2, 1))(x)
    x = layers.AveragePooling2D((3, 2), strides=(2, 2), padding="same")(x)
    x = layers.LayerNormalization(center=False)(x)
    x = layers.Conv2D(4, (3, 2), activation="silu", name="conv")(x)
    x = layers.RMSNormalization()(x)
    most = layers.GlobalMaxPooling2D(keepdims=True)(x)
    x = layers.Flatten()(layers.Subtract()([x, most]))
    return keras.Model(inputs, layers.Softmax()(x))


def vectors():
    x = inputs = keras.Input((6,))
    y = layers.Permute((2, 1))(layers.RepeatVector(4)(x))
    y = layers.Concatenate(axis=1)([y, layers.Reshape((-1, 4))(layers.Dense(8, activation="gelu")(x))])
    y = layers.GlobalAveragePooling1D()(y)
    y = layers.Average()([y, layers.Dense(4, activation="sigmoid")(x), layers.Dense(1)(x)])
    y = layers.Maximum()([y, layers.Minimum()([y, layers.Activation("softplus")(y)])])
    return keras.Model(inputs, [layers.Identity()(y), x])


def functions():
    x = inputs = keras.Input((3, 4), name="x")
    y = ops.sqrt(ops.square(x) + 1.0) / 2.0 - ops.exp(-abs(x)) ** 2
    y = y * ops.rsqrt(ops.absolute(y) + 0.5) + ops.log(ops.square(x) + 2.0) / (ops.square(y) + 1.0)
    y = ops.maximum(y, 0.25 - y) + ops.minimum(ops.sigmoid(x), ops.tanh(x)) + ops.relu(x) + ops.silu(x)
    y = y + ops.gelu(x) + ops.gelu(x, approximate=False) + ops.softplus(x) + ops.softmax(x)
    z = ops.mean(y, axis=[1, 2]) + ops.sum(y * 0.125, axis=(-1, 1))
    return keras.Model(inputs, [ops.max(y, axis=1, keepdims=True), layers.Dense(2)(layers.Reshape((1,))(z))])


def inception():
    def unit(x, filters, size, **options):
        x = layers.Conv2D(filters, size, padding="same", use_bias=False)(x)
        return layers.ReLU()(layers.BatchNormalization(**options)(x))

    x = inputs = keras.Input((6, 6, 3), name="image")
    x = unit(x, 4, 3, scale=False)
    x = layers.Concatenate()([unit(x, 3, 1, center=False), unit(x, 2, 3, scale=False, center=False)])
    return keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling2D()(x)))


MODELS = {function.__name__: function
          for function in (residual, shared, nested, images, vectors, functions, inception)}


def fill(model, seed):
    """Random weights, with variances above 0."""
    scramble(model, seed)
    for variable in model.variables:
        if variable.name == "moving_variance":
            variable.assign(np.abs(variable) + 0.5)


def inputs_of(model):
    generator = np.random.default_rng(5)
    return [generator.normal(size=(3, *value.shape[1:])).astype("f4") for value in model.inputs]


def predict(model):
    inputs = inputs_of(model)
    outputs = model(inputs if len(inputs) > 1 else inputs[0])
    return [np.asarray(output) for output in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]


def savepoint(model, folder, stem="savepoint", configuration=None, **values_by_name):
    """The model as a savepoint of Holdfast; returns the path, the graph and the arrays."""
    file = save(model, folder, "archive", stem)
    program("graph", file, folder / (stem + "_graph.json"))
    program("read", file, folder / (stem + "_arrays.h5"))
    graph = json.loads((folder / (stem + "_graph.json")).read_text())
    content = {name: value for name, value in arrays(folder / (stem + "_arrays.h5")).items()
               if name.startswith("model/")}
    metadata = {"kind": "savepoint", "holdfast": "0.1", "graph": graph, "step": 0, "configuration": configuration or {}}
    pack(folder / (stem + ".h5"), metadata, {**content, **values_by_name})
    return folder / (stem + ".h5"), graph, content


@pytest.mark.parametrize("kind", MODELS)
def test_keras_predicts_the_same_after_its_model_was_a_savepoint(kind, tmp_path):
    model = MODELS[kind]()
    fill(model, seed=1)
    file, _, _ = savepoint(model, tmp_path)

    program("write", file, tmp_path / "back.keras", "archive")
    found = keras.saving.load_model(tmp_path / "back.keras")

    assert [value.shape for value in found.inputs] == [value.shape for value in model.inputs]
    for ours, theirs in zip(predict(found), predict(model), strict=True):
        # The same operations in another order of layers: only the last bits may differ.
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", MODELS)
def test_keras_loads_every_form_of_a_graph(kind, tmp_path):
    model = MODELS[kind]()
    fill(model, seed=2)
    file, _, _ = savepoint(model, tmp_path)
    program("write", file, tmp_path / "back.keras", "archive")
    found = keras.saving.load_model(tmp_path / "back.keras")
    expected = values(found)
    for form in FORMS:
        back = tmp_path / ("again" + SUFFIXES[form])

        program("write", file, back, form)

        assert_same_bits(values(load(back, form, found)), expected)
        back.unlink()


@pytest.mark.parametrize("kind", MODELS)
def test_weights_of_a_graph_become_a_savepoint(kind, tmp_path):
    model = MODELS[kind]()
    fill(model, seed=3)
    _, _, content = savepoint(model, tmp_path)
    like, _, _ = savepoint(model, tmp_path, "like", **{name: np.zeros_like(value) for name, value in content.items()})
    program("write", like, tmp_path / "empty.keras", "archive")
    ours = keras.saving.load_model(tmp_path / "empty.keras")
    fill(ours, seed=4)
    ours.save(tmp_path / "trained.keras")

    # The file that Keras wrote of its own model, and the one that it wrote of ours.
    for form in ("archive", "legacy_model") if kind != "functions" else ("archive",):
        program("savepoint", save(model, tmp_path, form, "theirs"), like, tmp_path / "back.h5")
        found = arrays(tmp_path / "back.h5")
        assert {name: value.tobytes() for name, value in found.items()} == {
            name: value.tobytes() for name, value in content.items()}
    program("savepoint", tmp_path / "trained.keras", like, tmp_path / "trained.h5")
    expected = sorted(value.tobytes() for value in values(ours))
    assert sorted(value.tobytes() for value in arrays(tmp_path / "trained.h5").values()) == expected


def test_the_optimizer_of_a_graph_goes_on_in_keras_and_back(tmp_path):
    # Two of its slots have a pass of their own, and Keras orders the layers by depth.
    optimizer = {"kind": "rmsprop", "learning_rate": 0.01, "momentum": 0.5, "centered": True}
    configuration = {"optimizer": optimizer, "loss": {"kind": "sparse_categorical_crossentropy"}}
    slots = ["velocity", "momentum", "average_gradient"]
    generator = np.random.default_rng(6)
    model = residual()
    state = {f"optimizer/{slot}/{layer.name}/{weight.name}": generator.normal(size=weight.shape).astype("f4")
             for layer in model.layers for weight in layer.trainable_weights for slot in slots}
    file, _, content = savepoint(model, tmp_path, configuration=configuration, **state)
    like, _, _ = savepoint(model, tmp_path, "like", configuration,
                           **{name: np.zeros_like(value) for name, value in state.items()})
    program("write", file, tmp_path / "a.keras", "archive")
    found = keras.saving.load_model(tmp_path / "a.keras")
    found.save(tmp_path / "b.keras")

    program("savepoint", tmp_path / "b.keras", like, tmp_path / "back.h5")

    by_path = {variable.path: np.asarray(variable.value) for variable in found.optimizer.variables}
    for name, value in state.items():
        _, slot, weight = name.split("/", 2)
        [path] = [path for path in by_path if path.endswith(f"/{weight.replace('/', '_')}_{slot}")]
        assert by_path[path].tobytes() == value.tobytes(), path
    assert {name: value.tobytes() for name, value in arrays(tmp_path / "back.h5").items()} == {
        name: value.tobytes() for name, value in {**content, **state}.items()}


def test_a_graph_has_the_layers_of_nested_models_by_their_paths(tmp_path):
    _, graph, content = savepoint(nested(), tmp_path)

    assert [layer["name"] for layer in graph["layers"]] == [
        "encoder/hidden", "encoder/side", "encoder/sum", graph["layers"][3]["name"], "head/first", "head/inner/hidden",
        graph["layers"][6]["name"]]
    assert [value["name"] for value in graph["inputs"]] == ["a", "b"]
    assert {name for name in content if name.endswith("bias")} == {
        f"model/{path}/bias" for path in ("encoder/hidden", "encoder/side", "head/first", "head/inner/hidden")}
    # The encoder is called three times; its first call and the part of the third that an output needs.
    assert sum(call["layer"] == 0 for call in graph["calls"]) == 3


def test_a_chain_becomes_a_sequential(tmp_path):
    x = keras.Input((4,))
    _, graph, _ = savepoint(keras.Model(x, layers.Dense(2)(layers.Dense(3)(x))), tmp_path)

    assert graph["format"] == "holdfast.sequential"


def nested_chain():
    encoder = nested().get_layer("encoder")
    head = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="relu", name="hidden")], name="head")
    x = keras.Input((6,), name="x")
    return keras.Model(x, head(layers.Add(name="both")(encoder(x))))


def rewritten():
    """Layers and functions for which Holdfast has others."""
    x = inputs = keras.Input((6, 8, 3), name="image")
    x = layers.Rescaling([0.5, 2.0, 1.5], offset=[0.5, -1.0, 0.0])(x)
    x = layers.Dropout(0.25, noise_shape=(None, 1, 1, 1))(x)
    x = layers.Dropout(0.25, noise_shape=(None, 1, 1, 3))(x)
    y = ops.clip(ops.transpose(x, (0, 2, 3, 1)), -1.5, 1.0)
    y = ops.squeeze(ops.expand_dims(y, -1), -1)
    y = y * ops.cast(y > 0.25, "float32") + ops.cast(ops.less(y, ops.sum(y, axis=1, keepdims=True)), "float32")
    return keras.Model(inputs, layers.Dense(3)(layers.Flatten()(y)))


@pytest.mark.parametrize("kind", ["residual", "images", "vectors", "functions", "nested_chain", "rewritten"])
def test_holdfast_predicts_what_keras_does(kind, tmp_path):
    model = {**MODELS, "nested_chain": nested_chain, "rewritten": rewritten}[kind]()
    fill(model, seed=6)
    inputs, expected = inputs_of(model)[0], predict(model)
    for place, output in enumerate(model.outputs):
        # The program takes models of one output.
        file = save(keras.Model(model.inputs, output), tmp_path, "archive", f"part_{place}")
        holdfast("convert", file, tmp_path / f"{place}.h5")

        found = predicted_by_holdfast(tmp_path / f"{place}.h5", [inputs], tmp_path).reshape(expected[place].shape)
        # Two libraries add up to some hundred products of numbers around 1 in float32, layer after layer.
        np.testing.assert_allclose(found, expected[place], rtol=1e-3, atol=1e-4)


def test_the_command_converts_graphs_in_both_directions(tmp_path):
    model = nested()
    fill(model, seed=7)
    like, _, content = savepoint(model, tmp_path, "like")

    said = holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "a.h5")
    back = holdfast("convert", tmp_path / "a.h5", tmp_path / "a.keras")
    there = holdfast("convert", like, tmp_path / "b.keras")
    holdfast("convert", tmp_path / "b.keras", tmp_path / "b.h5", "--like", like)

    assert "note:" not in said + back
    assert there.count("note:") == 1 and "(epoch, seed, history, callbacks) is left out" in there
    assert_same_bits(values(keras.saving.load_model(tmp_path / "a.keras")), values(model))
    shown = holdfast("inspect", tmp_path / "a.h5")
    assert "encoder/hidden" in shown.split("called on")[1] and "a; b; b" in shown
    holdfast("diff", like, tmp_path / "b.h5")


def test_the_command_says_why_a_model_is_left_out(tmp_path):
    x = keras.Input((5, 4, 2))
    model = keras.Model(x, layers.ConvLSTM1D(3, 2, name="memory")(x))

    said = holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "a.h5", exit_code=1)

    assert "only the arrays are written, without the model" in said and '"memory"' in said


def refused(model, folder):
    return program("graph", save(model, folder, "archive"), folder / "graph.json", fails=True)


def test_a_layer_that_holdfast_lacks_is_refused_by_name(tmp_path):
    x = keras.Input((5, 4, 2))
    message = refused(keras.Model(x, layers.ConvLSTM1D(3, 2, name="memory")(x)), tmp_path)

    assert message.startswith("unsupported: ") and '"memory"' in message and "LSTM" in message
    assert "Holdfast has Activation, " in message and " Add, " in message


@pytest.mark.parametrize("make, word", [
    (lambda x: layers.BatchNormalization(axis=1, name="c")(x), "axis"),
    (lambda x: layers.Dense(2, activation="glu", name="c")(x), "activation"),
    (lambda x: layers.UpSampling2D(interpolation="bicubic", name="c")(x), "interpolation"),
    (lambda x: layers.Dense(2, dtype="float16", name="c")(x), "float16"),
    (lambda x: ops.mean(x), "samples"),
])
def test_an_option_that_holdfast_lacks_is_refused_by_name(make, word, tmp_path):
    x = keras.Input((6, 6, 2))

    assert word in refused(keras.Model(x, make(x)), tmp_path)


def test_losses_and_optimizer_of_several_outputs_go_to_keras_and_back(tmp_path):
    model = shared()
    names = [name for name in savepoint(model, tmp_path)[2]]
    generator = np.random.default_rng(8)
    content = savepoint(model, tmp_path)[2]
    slots = {name.replace("model/", "optimizer/momentum/", 1): generator.normal(size=content[name].shape).astype("f4")
             for name in names}
    configuration = {"optimizer": {"kind": "sgd", "learning_rate": 0.5, "momentum": 0.9, "nesterov": True},
                     "losses": [{"loss": {"kind": "huber", "delta": 2.0}, "weight": 0.5},
                                {"loss": {"kind": "mean_squared_error"}, "weight": 1.0}],
                     "metrics": [{"output": 1, "metric": {"kind": "mean_absolute_error", "name": "distance"}}]}
    file, _, _ = savepoint(model, tmp_path, "trained", configuration, **slots)

    said = holdfast("convert", file, tmp_path / "a.keras")
    holdfast("convert", tmp_path / "a.keras", tmp_path / "back.h5", "--like", file)

    assert "the optimizer" not in said
    found = keras.saving.load_model(tmp_path / "a.keras")
    state = {variable.path.split("/", 1)[1]: np.asarray(variable) for variable in found.optimizer.variables}
    assert len([name for name in state if "momentum" in name]) == len(slots)
    x = [generator.normal(size=(4, 6)).astype("f4") for _ in range(2)]
    y = [generator.normal(size=(4, 2)).astype("f4"), generator.normal(size=(4, 1)).astype("f4")]
    results = found.evaluate(x, y, verbose=0, return_dict=True)
    p, q = (np.asarray(value) for value in found(x))
    huber = float(keras.losses.Huber(delta=2.0)(y[0], p))
    assert results["loss"] == pytest.approx(0.5 * huber + float(np.mean((y[1] - q) ** 2)), rel=1e-4)
    assert [name for name in results if "distance" in name] == ["value_distance"]
    holdfast("diff", file, tmp_path / "back.h5")


def test_the_command_says_what_keras_lacks_of_the_training(tmp_path):
    model = shared()
    slots = {name.replace("model/", "optimizer/momentum/", 1): value for name, value in savepoint(model, tmp_path)[2].items()}
    configuration = {"optimizer": {"kind": "sgd", "learning_rate": 0.5, "momentum": 0.9},
                     "losses": [{"loss": {"kind": "mine"}, "weight": 1.0}] * 2, "metrics": []}
    file, _, _ = savepoint(model, tmp_path, "trained", configuration, **slots)

    assert 'is left out: Keras does not have the loss "mine"' in holdfast("convert", file, tmp_path / "a.keras")


def test_calls_in_inference_mode_are_frozen_or_noted(tmp_path):
    x = keras.Input((4,))
    base_input = keras.Input((4,))
    base = keras.Model(base_input, layers.BatchNormalization(name="bn")(layers.Dense(4, name="d")(base_input)), name="base")
    y = layers.Dropout(0.5, name="drop")(base(x, training=False), training=True)
    said = holdfast("convert", save(keras.Model(x, y), tmp_path, "archive"), tmp_path / "a.h5")

    assert 'layer "base" is called with training=False, which acts on "base/bn": Holdfast freezes it' in said
    assert 'layer "drop" is called with training=True' in said
    metadata = json.loads(holdfast("inspect", tmp_path / "a.h5", "--json"))["metadata"]
    frozen = {layer["name"]: not layer.get("trainable", True) for layer in metadata["graph"]["layers"]}
    assert frozen == {"base/d": False, "base/bn": True, "drop": False}


def test_layers_of_other_names_are_renamed(tmp_path):
    x = keras.Input((4,))
    model = keras.Model(x, layers.Dense(2, name="gr\u00f6\u00dfe b")(x))
    said = holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "a.h5")
    holdfast("convert", tmp_path / "a.h5", tmp_path / "a.keras")

    assert 'is called "gr__e_b" here' in said
    found = keras.saving.load_model(tmp_path / "a.keras")
    assert found.layers[1].name == "gr__e_b"
    assert_same_bits(values(found), values(model))


def test_efficient_net_becomes_a_model(tmp_path):
    model = keras.applications.EfficientNetB0(weights=None, input_shape=(32, 32, 3), classes=3)

    said = holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "a.h5")

    assert "without the model" not in said
