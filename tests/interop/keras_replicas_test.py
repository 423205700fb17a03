"""Models that multi_gpu_model of Keras 2 wrapped, once or several times, are read as their base models.

The files are made with h5py alone, as Keras 2 wrote them: fixed-length strings, weights named "dense_1/kernel:0".
"""

import json

import h5py
import numpy as np
import pytest

from keras_support import arrays, program

# Not bytecode: code that looked at it would fail.
LAMBDA = ["not base64 and no code", None, None]


def layer(class_name, name, *callers, **config):
    nodes = [[[caller, node, 0, {}] for caller, node in call] for call in callers]
    return {"class_name": class_name, "name": name, "config": {"name": name, "trainable": True, **config},
            "inbound_nodes": nodes}


def base_model(trainable=True):
    """An input, a convolution, a normalisation, a nested Sequential and an output. A second input would add nothing."""
    inner = {"name": "sequential_1", "layers": [layer("Dense", "dense_1", units=3), layer("Dense", "dense_2", units=3)]}
    layers = [
        layer("InputLayer", "input_1", batch_input_shape=[None, 4, 4, 2]),
        layer("Conv2D", "conv2d_1", [("input_1", 0)], use_bias=True),
        layer("BatchNormalization", "batch_normalization_1", [("conv2d_1", 0)], scale=True, center=True),
        layer("Flatten", "flatten_1", [("batch_normalization_1", 0)]),
        {"class_name": "Sequential", "name": "sequential_1", "config": inner,
         "inbound_nodes": [[["flatten_1", 0, 0, {}]]]},
        layer("Dense", "scores", [("sequential_1", 1)], use_bias=False)]
    layers[1]["config"]["trainable"] = trainable
    config = {"class_name": "Model", "config": {"name": "model_1", "layers": layers,
                                                "input_layers": [["input_1", 0, 0]],
                                                "output_layers": [["scores", 0, 0]]}}
    shapes = {"conv2d_1": {"conv2d_1/kernel:0": (3, 3, 2, 3), "conv2d_1/bias:0": (3,)},
              "batch_normalization_1": {f"batch_normalization_1/{name}:0": (3,)
                                        for name in ("gamma", "beta", "moving_mean", "moving_variance")},
              "sequential_1": {"dense_1/kernel:0": (12, 3), "dense_1/bias:0": (3,), "dense_2/kernel:0": (3, 3),
                               "dense_2/bias:0": (3,)},
              "scores": {"scores/kernel:0": (3, 2)}}
    generator = np.random.default_rng(7)
    groups = {}
    for entry in layers:
        weights = shapes.get(entry["name"], {})
        groups[entry["name"]] = {name: generator.normal(size=shape).astype("f4") for name, shape in weights.items()}
    return config, groups


def is_frozen(config, name):
    frozen = [entry["name"] for entry in config["config"]["layers"] if not entry["config"].get("trainable", True)]
    return any(name.startswith(layer_name + "/") for layer_name in frozen)


def flattened(config, groups):
    """The weights of a model that is a layer: trainable ones first."""
    everything = {name: value for weights in groups.values() for name, value in weights.items()}
    later = [name for name in everything if "moving_" in name or is_frozen(config, name)]
    return {name: everything[name] for name in [n for n in everything if n not in later] + later}


def wrap(config, groups, times, gpus=2):
    """multi_gpu_model(model, gpus), `times` times."""
    weights = flattened(config, groups)
    for number in range(times):
        name = config["config"]["name"]
        slices = [layer("Lambda", f"lambda_{number * gpus + gpu + 1}", [("input_1", 0)], function=LAMBDA,
                        function_type="lambda", arguments={"i": gpu, "parts": gpus}) for gpu in range(gpus)]
        shared = {"class_name": config["class_name"], "name": name, "config": config["config"],
                  "inbound_nodes": [[[part["name"], 0, 0, {}]] for part in slices]}
        merged = layer("Concatenate", "scores", [(name, gpu + 1) for gpu in range(gpus)], axis=0)
        outer = [layer("InputLayer", "input_1", batch_input_shape=[None, 4, 4, 2]), *slices, shared, merged]
        config = {"class_name": "Model", "config": {"name": f"model_{number + 2}", "layers": outer,
                                                    "input_layers": [["input_1", 0, 0]],
                                                    "output_layers": [["scores", 0, 0]]}}
        groups = {entry["name"]: weights if entry is shared else {} for entry in outer}
    return config, groups


def write(path, config, groups, whole=True, optimizer=None):
    with h5py.File(path, "w") as file:
        root = file
        if whole:
            file.attrs["keras_version"] = b"2.2.4"
            file.attrs["backend"] = b"tensorflow"
            file.attrs["model_config"] = json.dumps(config).encode()
            root = file.create_group("model_weights")
        root.attrs["layer_names"] = [name.encode() for name in groups]
        root.attrs["backend"] = b"tensorflow"
        root.attrs["keras_version"] = b"2.2.4"
        for name, weights in groups.items():
            group = root.create_group(name)
            group.attrs["weight_names"] = [weight.encode() for weight in weights]
            for weight, value in weights.items():
                group[weight] = value
        if optimizer:
            file.attrs["training_config"] = json.dumps(optimizer[0]).encode()
            group = file.create_group("optimizer_weights")
            group.attrs["weight_names"] = [name.encode() for name in optimizer[1]]
            for name, value in optimizer[1].items():
                group[name] = value
    return path


def tree(path):
    """The whole content of a file, with its JSON parsed."""
    result = {}

    def note(name, item):
        attributes = {key: np.asarray(value).tolist() for key, value in item.attrs.items()}
        for key in ("model_config", "training_config"):
            if key in attributes:
                attributes[key] = json.dumps(json.loads(attributes[key]), sort_keys=True)
        value = (item.dtype.str, item.shape, item[()].tobytes()) if isinstance(item, h5py.Dataset) else None
        # A group without attributes exists only because a path goes through it.
        if value or attributes:
            result[name] = (str(sorted(attributes.items())).replace("b'", "'"), value)

    with h5py.File(path) as file:
        note("", file)
        file.visititems(note)
    return result


def read_and_write(file, folder, form, stem):
    ours, back = folder / (stem + ".h5"), folder / (stem + "_back.h5")
    program("read", file, ours)
    program("write", ours, back, form)
    return arrays(ours), tree(back)


@pytest.mark.parametrize("trainable", [True, False])
@pytest.mark.parametrize("times", [1, 2, 3, 10])
def test_a_wrapped_model_is_read_as_its_base_model_bit_for_bit(times, trainable, tmp_path):
    config, groups = base_model(trainable)
    base = write(tmp_path / "base.h5", config, groups)
    wrapped = write(tmp_path / "wrapped.h5", *wrap(config, groups, times, gpus=2 + times % 3))

    expected = read_and_write(base, tmp_path, "legacy_model", "of_base")
    found = read_and_write(wrapped, tmp_path, "legacy_model", "of_wrapped")

    assert found[0].keys() == expected[0].keys() and len(found[0]) == 11
    assert all(found[0][name].tobytes() == expected[0][name].tobytes() for name in expected[0])
    assert found[1] == expected[1] == tree(base)


@pytest.mark.parametrize("times", [1, 2, 3, 10])
def test_a_weights_file_of_a_wrapped_model_has_the_base_models_weights(times, tmp_path):
    config, groups = base_model()
    wrapped = write(tmp_path / "wrapped.h5", *wrap(config, groups, times), whole=False)
    program("read", wrapped, tmp_path / "ours.h5")

    found = arrays(tmp_path / "ours.h5")

    expected = {f"model/{weight.removesuffix(':0')}": value for weights in groups.values()
                for weight, value in weights.items()}
    assert found.keys() == expected.keys()
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


def test_names_that_tensorflow_numbered_again_are_matched_by_position(tmp_path):
    config, groups = base_model()
    outer_config, outer_groups = wrap(config, groups, 2)
    renamed = {name: {weight.replace("/", "_1/", 1): value for weight, value in weights.items()}
               for name, weights in outer_groups.items()}
    program("read", write(tmp_path / "base.h5", config, groups), tmp_path / "of_base.h5")
    program("read", write(tmp_path / "renamed.h5", outer_config, renamed), tmp_path / "of_renamed.h5")

    expected, found = arrays(tmp_path / "of_base.h5"), arrays(tmp_path / "of_renamed.h5")

    assert found.keys() == expected.keys()
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


def test_the_optimizers_state_stays_with_the_base_model(tmp_path):
    config, groups = base_model()
    training = {"optimizer_config": {"class_name": "Adam", "config": {"lr": 0.001, "amsgrad": False}}, "loss": "mse"}
    trainables = [(weight, value) for weight, value in flattened(config, groups).items() if "moving_" not in weight]
    state = {"Adam/iterations:0": np.int64(12)}
    for slot, sign in (("m", 1), ("v", -1)):
        for number, (weight, value) in enumerate(trainables):
            state[f"training/Adam/{slot}_{number}:0"] = sign * value
    wrapped = write(tmp_path / "wrapped.h5", *wrap(config, groups, 2), optimizer=(training, state))
    program("read", wrapped, tmp_path / "ours.h5")

    found = arrays(tmp_path / "ours.h5")

    assert found["optimizer/iteration"] == 12
    np.testing.assert_array_equal(found["optimizer/momentum/scores/kernel"], groups["scores"]["scores/kernel:0"])
    np.testing.assert_array_equal(found["optimizer/velocity/sequential_1/dense_2/kernel"],
                                  -groups["sequential_1"]["dense_2/kernel:0"])
    assert len([name for name in found if name.startswith("optimizer/")]) == 1 + 2 * len(trainables)


def test_a_model_that_only_resembles_a_wrapper_stays_what_it_is(tmp_path):
    config, groups = base_model()
    outer_config, outer_groups = wrap(config, groups, 1)
    other = json.loads(json.dumps(outer_config))
    other["config"]["layers"][-1]["config"]["axis"] = -1  # concatenates features, not the parts of a batch
    program("read", write(tmp_path / "other.h5", other, outer_groups), tmp_path / "ours.h5")

    assert "model/model_1/conv2d_1/kernel" in arrays(tmp_path / "ours.h5")


def test_weights_that_fit_no_layer_are_an_error(tmp_path):
    config, groups = base_model()
    outer_config, outer_groups = wrap(config, groups, 1)
    outer_groups["model_1"] = {"nobody/knows:0": np.zeros(3, "f4")}

    message = program("read", write(tmp_path / "bad.h5", outer_config, outer_groups), tmp_path / "o.h5", fails=True)

    assert message.startswith("unsupported: ") and "base model" in message
