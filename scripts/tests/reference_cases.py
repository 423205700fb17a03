#!/usr/bin/env python3
"""reference_cases.py [--cases N] [--to FOLDER] [KIND...]: writes tests/unit/nn/layers/reference/KIND.json, random small
cases of each layer with what Keras computes for them in float64. Without a KIND, all are written. More cases than the 8
that are checked in go to a folder elsewhere, which HOLDFAST_REFERENCE_CASES names for unit_nn:

    reference_cases.py --cases 100 --to /tmp/cases
    HOLDFAST_REFERENCE_CASES=/tmp/cases unit_nn --gtest_filter='ReferenceCases.*'

Operations between layers ("Operation") have no counterpart in Keras. They are written down here, in NumPy.

A case has a layer's configuration as in files of Holdfast, inputs, weights, a gradient of the output, and what is
expected: the output, and the gradients of inputs (added up over the samples) and parameters. Gradients are central
differences of the output, which in float64 are right to 1e-8. Layers that draw random numbers are compared in
inference alone.

`magnitude` says how far rounding may move a result: the largest change of an element when all numbers that enter it
change by a random sign times their size (taken from a small such change), plus the largest element. The test
multiplies it by rounding errors of f32.

Packages: keras and jax, in the versions of tests/interop/requirements.txt.
"""

import argparse
import json
import math
import os
import pathlib
import zlib

os.environ["KERAS_BACKEND"] = "numpy"
os.environ["JAX_ENABLE_X64"] = "1"
import keras
import numpy as np
from keras import layers

from keras.src.backend.common import dtypes

# Keras (3.15) takes f64 and f64 for f32 in its NumPy backend.
promoted = dtypes._lattice_result_type
dtypes._lattice_result_type = lambda *kinds: {"float32": "float64"}.get(promoted(*kinds), promoted(*kinds))
keras.config.set_floatx("float64")
CASES = 8
# Later cases that found an error: here a kernel of oneDNN gave wrong gradients.
ALSO = {"Conv2DTranspose": (43,)}
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/unit/nn/layers/reference"

# What a maker returns: a Keras layer, the configuration in a file, shapes of a sample of each input, and the modes.
TRAINED, INFERRED, BOTH = ("training",), ("inference",), ("training", "inference")


# `integers` above 0: inputs are integers below it. `prepare` changes what was drawn for the inputs.
def case(layer, config, *shapes, modes=TRAINED, buffers=(), integers=0, prepare=lambda rng, inputs: inputs):
    return {"layer": layer, "config": config, "shapes": shapes, "modes": modes, "buffers": buffers,
            "integers": integers, "prepare": prepare}


def extents(rng, count, low=1, high=4):
    return tuple(int(n) for n in rng.integers(low, high + 1, count))


def number(rng, low, high):
    """A float of few digits, the same in f32."""
    return float(np.round(rng.uniform(low, high) * 16) / 16)


def flag(rng):
    return bool(rng.integers(2))


def sparsemax(x):
    """That of the paper (Martins and Astudillo, 2016, algorithm 1). Keras 3.15 adds up the cumulative sums of all
    elements that stay, so its results do not add up to 1 where more than one stays."""
    z = -keras.ops.sort(-x, axis=-1)
    stays = 1 + keras.ops.arange(1, x.shape[-1] + 1, dtype=x.dtype) * z > keras.ops.cumsum(z, axis=-1)
    count = keras.ops.sum(keras.ops.cast(stays, x.dtype), axis=-1, keepdims=True)
    limit = (keras.ops.sum(keras.ops.where(stays, z, 0.0), axis=-1, keepdims=True) - 1) / count
    return keras.ops.maximum(x - limit, 0.0)


def inside_of_support(rng, inputs):
    """Raises the largest of a row a little where an element is at the edge of what sparsemax keeps: a kink."""
    x = inputs[0].copy()
    for row in x.reshape(-1, x.shape[-1]):
        z = -np.sort(-row)
        if (np.abs(1 + np.arange(1, len(z) + 1) * z - np.cumsum(z)) < 2.0**-10).any():
            row[row.argmax()] += 2.0**-7
    return [x]


# Each activation: the text of a file, and the same in Keras.
def activations(rng):
    a = keras.activations
    slope, alpha, threshold = number(rng, 0.1, 1), number(rng, 0.5, 2), number(rng, 0.1, 1)
    high = number(rng, 1, 2)
    return [
        ("linear", a.linear), ("relu", a.relu), ("tanh", a.tanh), ("sigmoid", a.sigmoid), ("softmax", a.softmax),
        ("gelu", a.gelu), ("gelu_tanh", lambda x: a.gelu(x, approximate=True)), ("relu6", a.relu6),
        (f"relu({slope},{high},{threshold})", lambda x: a.relu(x, slope, high, threshold)),
        (f"relu({slope},none,0)", lambda x: a.relu(x, slope)),
        (f"leaky_relu({slope})", lambda x: a.leaky_relu(x, slope)), (f"elu({alpha})", lambda x: a.elu(x, alpha)),
        ("selu", a.selu), (f"celu({alpha})", lambda x: a.celu(x, alpha)), ("silu", a.silu), ("softplus", a.softplus),
        ("softsign", a.softsign), ("hard_sigmoid", a.hard_sigmoid), ("hard_silu", a.hard_silu),
        ("hard_tanh", a.hard_tanh), ("tanh_shrink", a.tanh_shrink),
        (f"soft_shrink({threshold})", lambda x: a.soft_shrink(x, threshold)),
        (f"hard_shrink({threshold})", lambda x: a.hard_shrink(x, threshold)), ("exponential", a.exponential),
        ("log_sigmoid", a.log_sigmoid), ("mish", a.mish), ("log_softmax", a.log_softmax),
        (f"squareplus({alpha})", lambda x: a.squareplus(x, alpha)), ("sparse_plus", a.sparse_plus),
        ("sparse_sigmoid", a.sparse_sigmoid), ("sparsemax", sparsemax),
        (f"threshold({threshold},{-slope})", lambda x: a.threshold(x, threshold, -slope)),
    ]


def some_activation(rng):
    """One that does not lose a weight's gradient to a kink."""
    smooth = [one for one in activations(rng) if one[0] in ("linear", "tanh", "sigmoid", "mish", "softmax")]
    return smooth[rng.integers(len(smooth))]


def with_bias(rng, activation):
    return {"activation": activation, "use_bias": flag(rng), "kernel_initializer": "glorot_uniform",
            "bias_initializer": "zeros"}


def dense(rng):
    units, (text, function) = int(rng.integers(1, 5)), some_activation(rng)
    config = {"units": units, **with_bias(rng, text)}
    return case(layers.Dense(units, activation=function, use_bias=config["use_bias"]), config,
                extents(rng, rng.integers(1, 3)))


def windows(rng, rank):
    """Options that all convolutions have, as in files, and the shape of an image that has room for a window."""
    # Keras has no layer with both above 1. Each axis has its own, and one of them is 2.
    drawn = list(extents(rng, rank, 1, 2))
    drawn[rng.integers(rank)] = 2
    strides = dilation = (1,) * rank
    which = rng.integers(5)
    if which < 2:
        strides = tuple(drawn)
    elif which < 4:
        dilation = tuple(drawn)
    config = {"kernel_size": extents(rng, rank, 1, 3 if rank < 3 else 2), "strides": strides,
              "padding": ["valid", "same"][rng.integers(2)], "dilation_rate": dilation}
    shape = tuple((size - 1) * step + int(rng.integers(1, 4)) for size, step in zip(config["kernel_size"], dilation))
    return config, shape


def convolution(kind, rank, is_transposed=False):
    def make(rng):
        config, shape = windows(rng, rank)
        text, function = some_activation(rng)
        groups = 1 if is_transposed else int(rng.integers(1, 3))
        config = {"filters": groups * int(rng.integers(1, 3)), **config, "groups": groups, **with_bias(rng, text)}
        if kind is layers.Conv1D and rng.integers(4) == 0:
            config["padding"] = "causal"
        # It is below the stride of its axis, so it is 0 or 1.
        if is_transposed and max(config["strides"]) > 1 and rng.integers(4) > 0:
            config["output_padding"] = tuple(int(stride > 1 and rng.integers(4) > 0) for stride in config["strides"])
        given = {key: value for key, value in config.items() if key not in ("activation", "groups")}
        if not is_transposed:
            given["groups"] = groups
        # A file has these two where they are above 1.
        if groups == 1:
            del config["groups"]
        if max(config["dilation_rate"]) == 1:
            del config["dilation_rate"]
        return case(kind(activation=function, **given), config, shape + (groups * int(rng.integers(1, 3)),))

    return make


def depthwise(kind, rank, is_separable=False):
    def make(rng):
        config, shape = windows(rng, rank)
        text, function = some_activation(rng)
        config = {**config, "depth_multiplier": int(rng.integers(1, 3)), "activation": text, "use_bias": flag(rng),
                  "depthwise_initializer": "glorot_uniform", "bias_initializer": "zeros"}
        if is_separable:
            config = {"filters": int(rng.integers(1, 3)), **config, "pointwise_initializer": "glorot_uniform"}
        given = {key: value for key, value in config.items() if key != "activation"}
        return case(kind(activation=function, **given), config, shape + extents(rng, 1, 1, 2))

    return make


def pooling(kind, rank):
    def make(rng):
        config = {"pool_size": extents(rng, rank, 1, 3 if rank < 3 else 2), "strides": extents(rng, rank, 1, 2),
                  "padding": ["valid", "same"][rng.integers(2)]}
        # Keras takes one number in place of an axis.
        given = {key: value[0] if rank == 1 and key != "padding" else value for key, value in config.items()}
        return case(kind(**given), config, extents(rng, rank, 3, 4) + extents(rng, 1, 1, 2))

    return make


def adaptive_pooling(name):
    def make(rng):
        rank = int(rng.integers(1, 4))
        size = extents(rng, rank, 1, 3)
        layer = getattr(layers, f"Adaptive{name}Pooling{rank}D")(size)
        return case(layer, {"output_size": list(size)}, extents(rng, rank, 2, 6 if rank < 3 else 4) + extents(rng, 1, 1, 2))

    return make


EQUATIONS = [("abc,cd->abd", "d"), ("abc,cde->abde", "de"), ("abde,dec->abc", "c"), ("...x,xy->...y", "y"),
             ("abc,dc->abd", ""), ("abc,bd->adc", "d"), ("abc,dbc->ad", "")]


def einsum_dense(rng):
    equation, bias_axes = EQUATIONS[rng.integers(len(EQUATIONS))]
    given, output = equation.split(",")[0].strip("."), equation.split("->")[1].strip(".")
    begin = 0 if "." in equation else 1
    shape = extents(rng, len(given) - begin, 1, 4)
    known = dict(zip(given[begin:], shape))
    output_shape = [None if letter in known else int(rng.integers(1, 4)) for letter in output[begin:]]
    text, function = some_activation(rng)
    layer = layers.EinsumDense(equation, output_shape, activation=function, bias_axes=bias_axes or None)
    config = {"equation": equation, "output_shape": [-1 if one is None else one for one in output_shape],
              "activation": text, "bias_axes": bias_axes, "kernel_initializer": "glorot_uniform",
              "bias_initializer": "zeros"}
    return case(layer, config, (extents(rng, 1, 1, 3) if begin == 0 else ()) + shape)


def unit_normalization(rng):
    shape = extents(rng, rng.integers(1, 4), 1, 4)
    axes = sorted(int(axis) for axis in rng.choice(len(shape), rng.integers(1, len(shape) + 1), replace=False))
    return case(layers.UnitNormalization(axis=[axis + 1 for axis in axes]), {"axis": axes}, shape)


def global_pooling(name):
    def make(rng):
        rank, keeps = int(rng.integers(1, 4)), flag(rng)
        layer = getattr(layers, f"Global{name}Pooling{rank}D")(keepdims=keeps)
        return case(layer, {"keepdims": keeps}, extents(rng, rank, 1, 3) + extents(rng, 1))

    return make


def merge(kind, least=2, most=4):
    def make(rng):
        count = int(rng.integers(least, most + 1))
        shapes = broadcast_shapes(rng, count) if flag(rng) else [extents(rng, rng.integers(1, 3))] * count
        return case(kind(), {}, *shapes)

    return make


def concatenate(rng):
    rank = int(rng.integers(1, 4))
    axis = int(rng.integers(rank))
    shapes = [list(extents(rng, rank, 1, 3))] * int(rng.integers(2, 4))
    shapes = [tuple(int(rng.integers(1, 4)) if i == axis else n for i, n in enumerate(shape)) for shape in shapes]
    return case(layers.Concatenate(axis=axis + 1), {"axis": axis}, *shapes)


def dot(rng):
    first, second = list(extents(rng, rng.integers(1, 3), 1, 3)), list(extents(rng, rng.integers(1, 3), 1, 3))
    axes = [int(rng.integers(len(first))), int(rng.integers(len(second)))]
    second[axes[1]] = first[axes[0]]
    normalize = flag(rng)
    return case(layers.Dot(axes=(axes[0] + 1, axes[1] + 1), normalize=normalize),
                {"axes": axes, "normalize": normalize}, tuple(first), tuple(second))


def margins(kind, key, rank):
    def make(rng):
        sides = [[int(n) for n in rng.integers(0, 3, 2)] for _ in range(rank)]
        least = [sum(side) if key == "cropping" else 0 for side in sides]
        shape = tuple(n + int(rng.integers(1, 3)) for n in least)
        flat = [n for side in sides for n in side]
        return case(kind(tuple(sides[0]) if rank == 1 else tuple(map(tuple, sides))), {key: flat},
                    shape + extents(rng, 1, 1, 2))

    return make


def up_sampling(kind, rank):
    def make(rng):
        size = extents(rng, rank, 1, 3)
        return case(kind(size[0] if rank == 1 else size), {"size": size[0] if rank == 1 else size},
                    extents(rng, rank, 1, 2) + extents(rng, 1, 1, 2))

    return make


def bilinear(rng):
    size = extents(rng, 2, 1, 4)
    return case(layers.UpSampling2D(size, interpolation="bilinear"), {"size": size, "interpolation": "bilinear"},
                extents(rng, 2, 1, 3) + extents(rng, 1, 1, 2))


def permute(rng):
    order = [int(n) + 1 for n in rng.permutation(int(rng.integers(1, 4)))]
    return case(layers.Permute(order), {"dims": order}, extents(rng, len(order), 1, 3))


def reshape(rng):
    shape = extents(rng, rng.integers(1, 4), 1, 3)
    target = [int(np.prod(shape))] if flag(rng) else [shape[-1], -1]
    return case(layers.Reshape(target), {"target_shape": target}, shape)


def repeat_vector(rng):
    count = int(rng.integers(1, 5))
    return case(layers.RepeatVector(count), {"n": count}, extents(rng, 1))


def rescaling(rng):
    scale, offset = number(rng, -2, 2), number(rng, -1, 1)
    return case(layers.Rescaling(scale, offset), {"scale": scale, "offset": offset}, extents(rng, 2, 1, 3))


def batch_normalization(**without):
    def make(rng):
        options = {"momentum": 0.75, "epsilon": 0.0625, **without}
        return case(layers.BatchNormalization(**options), options, extents(rng, rng.integers(1, 3), 2, 3), modes=BOTH,
                    buffers=("moving_mean", "moving_variance"))

    return make


# Files name an option only where it is false.
BATCH_NORMALIZATIONS = [batch_normalization(), batch_normalization(scale=False), batch_normalization(center=False),
                        batch_normalization(scale=False, center=False)]


def layer_normalization(rng):
    epsilon, scale, center = 0.0625, flag(rng), flag(rng)
    return case(layers.LayerNormalization(epsilon=epsilon, scale=scale, center=center),
                {"epsilon": epsilon, "scale": scale, "center": center}, extents(rng, rng.integers(1, 3), 2, 4))


def normalization_of_axes(rng):
    rank = int(rng.integers(2, 4))
    axes = [int(n) for n in rng.permutation(range(-int(rng.integers(1, rank + 1)), 0))]
    epsilon, scale, center = 0.0625, flag(rng), flag(rng)
    return case(layers.LayerNormalization(axis=axes, epsilon=epsilon, scale=scale, center=center),
                {"axis": axes, "epsilon": epsilon, "scale": scale, "center": center}, extents(rng, rank, 2, 3))


def rms_normalization(rng):
    return case(layers.RMSNormalization(epsilon=0.0625), {"epsilon": 0.0625}, extents(rng, rng.integers(1, 3), 2, 4))


def group_normalization(rng):
    groups, epsilon, scale, center = int(rng.integers(1, 4)), 0.0625, flag(rng), flag(rng)
    channels, rank = groups * int(rng.integers(1, 3)), int(rng.integers(1, 4))
    shape, axis = list(extents(rng, rank - 1, 1, 2)), int(rng.integers(rank))
    shape.insert(axis, channels)
    written = -1 if groups == channels and flag(rng) else groups
    layer = layers.GroupNormalization(written, epsilon=epsilon, scale=scale, center=center)
    # Keras counts groups wrongly on axes other than the last one (3.15), so that the axis is moved there.
    return case(AlongAxis(layer, axis + 1),
                {"groups": written, "axis": axis, "epsilon": epsilon, "scale": scale, "center": center}, tuple(shape))


def normalization(rng):
    shape = extents(rng, rng.integers(1, 3), 1, 3)
    axis = [] if flag(rng) else sorted(int(n) for n in rng.choice(len(shape), rng.integers(1, len(shape) + 1), False))
    invert = flag(rng)
    count = int(np.prod([shape[n] for n in axis]))
    mean, variance = [number(rng, -1, 1) for _ in range(count)], [number(rng, 0.25, 2) for _ in range(count)]
    kept = tuple(shape[n] for n in axis)
    layer = layers.Normalization(axis=tuple(n + 1 for n in axis) or None, mean=np.reshape(mean, kept),
                                 variance=np.reshape(variance, kept), invert=invert)
    return case(layer, {"axis": axis, "mean": mean, "variance": variance, "invert": invert}, shape, modes=BOTH)


def relu(rng):
    high, slope, threshold = (None if flag(rng) else number(rng, 1, 2)), number(rng, 0, 1), number(rng, 0, 1)
    return case(layers.ReLU(high, slope, threshold),
                {"max_value": [high], "negative_slope": slope, "threshold": threshold}, extents(rng, 2, 2, 4))


def leaky_relu(rng):
    slope = number(rng, 0, 1)
    return case(layers.LeakyReLU(slope), {"negative_slope": slope}, extents(rng, 2, 2, 4))


def elu(rng):
    alpha = number(rng, 0.25, 2)
    return case(layers.ELU(alpha), {"alpha": alpha}, extents(rng, 2, 2, 4))


def prelu(rng):
    shape = extents(rng, 2, 2, 3)
    axes = [n for n in range(2) if flag(rng)]
    return case(layers.PReLU(shared_axes=[n + 1 for n in axes]), {"alpha_initializer": "zeros", "shared_axes": axes},
                shape)


def softmax(rng):
    shape = extents(rng, rng.integers(1, 4), 2, 3)
    axis = int(rng.integers(len(shape)))
    return case(layers.Softmax(axis=axis + 1), {"axis": axis}, shape)


def random(kind, key, low=0.1, high=0.9):
    def make(rng):
        rate = number(rng, low, high)
        name = kind.__name__
        rank = int(name[-2]) + 1 if name.endswith("D") else int(rng.integers(1, 4))
        return case(kind(rate), {key: rate}, extents(rng, rank, 1, 3), modes=INFERRED)

    return make


def activation(one):
    def make(rng):
        text, function = activations(rng)[one]
        prepare = {"prepare": inside_of_support} if text == "sparsemax" else {}
        return case(layers.Activation(function), {"activation": text}, extents(rng, 2, 2, 3), **prepare)

    return make


def embedding(rng):
    vocabulary, width = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    return case(layers.Embedding(vocabulary, width),
                {"vocabulary": vocabulary, "width": width, "initializer": "uniform(-0.05,0.05)"},
                extents(rng, rng.integers(1, 3)), integers=vocabulary)


class AlongAxis:
    """A layer of Keras that works along another axis than the last one."""

    _call_has_training_arg = False

    def __init__(self, layer, axis):
        self.layer, self.axis = layer, axis

    variables = property(lambda self: self.layer.variables)
    trainable_variables = property(lambda self: self.layer.trainable_variables)
    non_trainable_variables = property(lambda self: self.layer.non_trainable_variables)

    def build(self, shape):
        self.layer.build(np.moveaxis(np.empty(shape), self.axis, -1).shape)

    def __call__(self, x):
        return np.moveaxis(np.asarray(self.layer(np.moveaxis(x, self.axis, -1))), -1, self.axis)


class Reversed(layers.ReversibleEmbedding):
    """The way back."""

    def call(self, inputs):
        return super().call(inputs, reverse=True)


def reversible_embedding(rng):
    vocabulary, width, ties = int(rng.integers(1, 6)), int(rng.integers(1, 4)), flag(rng)
    cap = number(rng, 0.5, 2) if flag(rng) else None
    config = {"vocabulary": vocabulary, "width": width, "tie_weights": ties, "logit_soft_cap": [cap],
              "initializer": "uniform(-0.05,0.05)"}
    options = {"tie_weights": ties, "logit_soft_cap": cap}
    before = extents(rng, rng.integers(1, 3))
    if rng.integers(3) == 0:
        return case(layers.ReversibleEmbedding(vocabulary, width, **options), config, before, integers=vocabulary)
    return case(Reversed(vocabulary, width, **options), config, before + (width,))


class Function:
    """Looks to solve() like a layer of Keras without variables."""

    variables = trainable_variables = non_trainable_variables = ()
    _call_has_training_arg = False

    def __init__(self, function):
        self.function = function

    def build(self, shape):
        pass

    def __call__(self, values):
        return np.asarray(self.function(*values) if isinstance(values, list) else self.function(values), np.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


# Each is a function of one element.
ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid, "tanh": np.tanh}
GELU = {"gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2)))}
GELU_TANH = {"gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))}
OF_ONE = {
    "copy": lambda x: x, "negative": lambda x: -x, "absolute": np.abs, "square": lambda x: x * x,
    "exponential": np.exp,
    "silu": lambda x: x * sigmoid(x), "softplus": lambda x: np.log1p(np.exp(x)), "sign": np.sign,
}
OF_POSITIVE = {"square_root": np.sqrt, "reciprocal_root": lambda x: 1 / np.sqrt(x), "logarithm": np.log}
OF_TWO = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "minimum": np.minimum,
    "maximum": np.maximum, "less": np.less, "less_equal": np.less_equal,
}


# Differences of functions with a pole at 0 are right to 1e-8 only away from it.
def positive(rng, inputs):
    return [np.abs(x) + 0.5 for x in inputs]


def away_from_zero(rng, inputs):
    return [x + np.sign(x) for x in inputs]


# GELU of a negative number is a difference, whose error is relative to the number.
def with_a_large_one(rng, inputs):
    inputs[0].reshape(-1)[0] = 3.015625
    return inputs


def of_one(name, function, config, prepare=lambda rng, inputs: inputs):
    def make(rng):
        return case(Function(function), {"operation": name, **config}, extents(rng, rng.integers(1, 4), 1, 3),
                    prepare=prepare)

    return make


def broadcast_shapes(rng, count):
    """Shapes of equal rank, each of which may have an extent of 1 instead of the common one."""
    common = extents(rng, rng.integers(1, 4), 1, 3)
    return [tuple(1 if rng.integers(4) == 0 else n for n in common) for _ in range(count)]


def of_two(name, function, prepare=lambda rng, inputs: inputs):
    def make(rng):
        constant = int(rng.integers(-1, 2))
        if constant < 0:
            return case(Function(function), {"operation": name, "constants": [None, None]}, *broadcast_shapes(rng, 2),
                        prepare=prepare)
        number_of_it = number(rng, 0.5, 2)
        constants = [None, None]
        constants[constant] = number_of_it
        with_it = (lambda x: function(number_of_it, x)) if constant == 0 else (lambda x: function(x, number_of_it))
        return case(Function(with_it), {"operation": name, "constants": constants}, extents(rng, 2, 1, 3),
                    prepare=prepare)

    return make


def power(rng):
    exponent = number(rng, -2, 3)
    return case(Function(lambda x: x**exponent), {"operation": "power", "constants": [None, exponent]},
                extents(rng, 2, 1, 3), prepare=positive)


# Differences of two numbers that are drawn are 1/32 or more, and the steps of the differences are far smaller.
def equal(rng):
    def prepare(rng, inputs):
        return [inputs[0], np.where(rng.integers(0, 2, inputs[1].shape) == 1, inputs[0], inputs[1])]

    shape = extents(rng, 2, 1, 3)
    return case(Function(lambda a, b: np.abs(a - b) < 1 / 128), {"operation": "equal", "constants": [None, None]}, shape,
                shape, prepare=prepare)


def select(rng):
    def prepare(rng, inputs):
        return [np.float64(rng.integers(0, 2, inputs[0].shape)), *inputs[1:]]

    return case(Function(lambda c, a, b: np.where(c > 0.5, a, b)),
                {"operation": "select", "constants": [None, None, None]}, *broadcast_shapes(rng, 3), prepare=prepare)


def stop_gradient(rng):
    # Constant around the numbers that are drawn.
    return case(Function(lambda x: np.round(x * 64) / 64), {"operation": "stop_gradient"}, extents(rng, 2, 1, 3))


def softmax_operation(rng):
    def function(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    return case(Function(function), {"operation": "softmax"}, extents(rng, rng.integers(1, 4), 1, 3))


def cast(rng):
    return case(Function(lambda x: x), {"operation": "cast"}, extents(rng, 2, 1, 3), integers=1000)


def reduction(name, function):
    def make(rng):
        shape = extents(rng, rng.integers(1, 4), 1, 3)
        begin = int(rng.integers(len(shape)))
        end = int(rng.integers(begin + 1, len(shape) + 1))
        axes = tuple(range(begin + 1, end + 1))
        return case(Function(lambda x: function(x, axis=axes, keepdims=True)),
                    {"operation": name, "axes": [begin, end]}, shape)

    return make


def reshape_operation(rng):
    shape = extents(rng, rng.integers(1, 4), 1, 3)
    target = [int(np.prod(shape))] if flag(rng) else list(shape[::-1])
    return case(Function(lambda x: x.reshape(x.shape[0], *target)), {"operation": "reshape", "shape": target}, shape)


def broadcast(rng):
    shape = extents(rng, rng.integers(1, 4), 1, 3)
    narrow = tuple(1 if flag(rng) else n for n in shape)
    return case(Function(lambda x: np.broadcast_to(x, (x.shape[0], *shape))),
                {"operation": "broadcast", "shape": list(shape)}, narrow)


def along_an_axis(rng):
    shape = extents(rng, rng.integers(1, 4), 1, 3)
    return shape, int(rng.integers(len(shape)))


def slice_operation(rng):
    shape, axis = along_an_axis(rng)
    begin = int(rng.integers(shape[axis]))
    end = int(rng.integers(begin + 1, shape[axis] + 1))
    return case(Function(lambda x: np.take(x, range(begin, end), axis + 1)),
                {"operation": "slice", "axis": axis, "begin": begin, "end": end}, shape)


def pad(rng):
    shape, axis = along_an_axis(rng)
    before, after = (int(n) for n in rng.integers(0, 3, 2))

    def function(x):
        margins = [(0, 0)] * x.ndim
        margins[axis + 1] = (before, after)
        return np.pad(x, margins)

    return case(Function(function), {"operation": "pad", "axis": axis, "before": before, "after": after}, shape)


def concatenate_operation(rng):
    shape, axis = along_an_axis(rng)
    shapes = [tuple(int(rng.integers(1, 4)) if i == axis else n for i, n in enumerate(shape))
              for _ in range(int(rng.integers(2, 4)))]
    return case(Function(lambda *values: np.concatenate(values, axis + 1)), {"operation": "concatenate", "axis": axis},
                *shapes)


def permute_operation(rng):
    shape = extents(rng, rng.integers(1, 4), 1, 3)
    order = [int(n) for n in rng.permutation(len(shape))]
    return case(Function(lambda x: x.transpose(0, *(n + 1 for n in order))), {"operation": "permute", "order": order},
                shape)


def pooling_operation(rng):
    rank, name = int(rng.integers(1, 3)), ["Max", "Average"][rng.integers(2)]
    config = {"pool_size": extents(rng, rank, 1, 3), "strides": extents(rng, rank, 1, 2),
              "padding": ["valid", "same"][rng.integers(2)]}
    given = {key: value[0] if rank == 1 and key != "padding" else value for key, value in config.items()}
    return case(getattr(layers, f"{name}Pooling{rank}D")(**given),
                {"operation": "pooling", "kind": {"Max": "maximum", "Average": "average"}[name], **config},
                extents(rng, rank, 3, 4) + extents(rng, 1, 1, 2))


def einsum_operation(rng):
    # Equations that are products of matrices as they stand; einsum() permutes operands of others.
    equation = ("thd,shd->hts", "hts,shd->thd", "td,sd->ts", "hts,hsd->htd", "td,td->t", "t,s->st")[rng.integers(6)]
    a, b, result = equation.replace("->", ",").split(",")
    sizes = dict(zip("thsd", extents(rng, 4, 1, 3)))
    return case(Function(lambda x, y: np.einsum(f"z{a},z{b}->z{result}", x, y)),
                {"operation": "einsum", "equation": equation},
                *(tuple(sizes[letter] for letter in letters) for letters in (a, b)))


def flip_operation(rng):
    shape, axis = along_an_axis(rng)
    return case(Function(lambda x: np.flip(x, axis + 1)), {"operation": "flip", "axis": axis}, shape)


OPERATIONS = (
    [of_one(name, function, {}) for name, function in ACTIVATIONS.items()]
    + [of_one(name, function, {"constants": [None]}) for name, function in OF_ONE.items()]
    + [of_one(name, function, {"constants": [None]}, positive) for name, function in OF_POSITIVE.items()]
    + [of_one(name, function, {}, with_a_large_one) for name, function in GELU.items()]
    + [of_one(name, function, {"constants": [None]}, with_a_large_one) for name, function in GELU_TANH.items()]
    + [of_two(name, function) for name, function in OF_TWO.items()]
    + [of_two("divide", np.divide, away_from_zero)]
    + [reduction(name, function) for name, function in (("sum", np.sum), ("mean", np.mean), ("largest", np.max))]
    + [power, equal, select, stop_gradient, softmax_operation, cast, reshape_operation, broadcast, slice_operation, pad,
       concatenate_operation, permute_operation, pooling_operation, einsum_operation, flip_operation])


def flatten(rng):
    return case(layers.Flatten(), {}, extents(rng, rng.integers(1, 4), 1, 3))


class Called:
    """A layer of Keras that is called with several arguments. `names` are those of its weights in Holdfast."""

    _call_has_training_arg = False

    def __init__(self, layer, names, call):
        self.layer, self.names, self.call = layer, names, call

    variables = property(lambda self: self.layer.variables)
    trainable_variables = property(lambda self: self.layer.trainable_variables)
    non_trainable_variables = property(lambda self: self.layer.non_trainable_variables)

    def build(self, shapes):
        """By a call, since layers are built for other arguments than they are called with."""
        if not isinstance(shapes, list):
            shapes = [shapes]
        self.call(self.layer, [np.ones(shape) for shape in shapes])

    def __call__(self, values):
        return np.asarray(self.call(self.layer, values if isinstance(values, list) else [values]))


def with_masks(count, keeps_first=False):
    """The last inputs become 0 or 1."""
    def prepare(rng, inputs):
        masks = [np.float64(rng.integers(0, 3, x.shape) > 0) for x in inputs[len(inputs) - count:]]
        for mask in masks:
            if keeps_first:
                mask[..., 0] = 1
        return inputs[:len(inputs) - count] + masks

    return prepare


def is_kept(mask):
    return np.asarray(mask) > 0.5


ATTENTION_LIMITS = {"kernel_initializer": "glorot_uniform", "bias_initializer": "zeros"}


def heads_of_attention(rng, make):
    """`make` gives a layer, its configuration and whether it takes values of another width."""
    use_bias, causal, window = flag(rng), flag(rng), int(rng.integers(0, 3))
    values, has_mask, has_padding = int(rng.integers(1, 4)), flag(rng), flag(rng)
    layer, config = make({"use_bias": use_bias, "sliding_window": window or None})
    names = [f"{part}_dense/{weight}" for part in ("query", "key", "value", "output")
             for weight in (("kernel", "bias") if use_bias else ("kernel",))]

    def call(layer, inputs):
        given = inputs[:values]
        query, value, key = given[0], given[min(1, values - 1)], given[-1]
        masks = inputs[values:]
        options = {"attention_mask": is_kept(masks[0])} if has_mask else {}
        if has_padding:
            options["value_mask"] = is_kept(masks[-1])
        # With the scores, so that a query without keys gives zeros on each backend.
        return layer(query, value, key=key, use_causal_mask=causal, return_attention_scores=True, **options)[0]

    queries, keys = extents(rng, 2, 1, 4)
    keys = queries if values == 1 else keys
    shapes = [(queries, int(rng.integers(1, 4)))] + [(keys, int(rng.integers(1, 4))) for _ in range(values - 1)]
    shapes += [(queries, keys)] * has_mask + [(keys,)] * has_padding
    config |= {"dropout": 0.0, "use_bias": use_bias, "use_causal_mask": causal, "sliding_window": window,
               "attention_mask": has_mask, "padding_mask": has_padding, "return_attention_scores": False,
               **ATTENTION_LIMITS}
    return case(Called(layer, names, call), config, *shapes, prepare=with_masks(has_mask + has_padding))


def multi_head_attention(rng):
    heads, key_dim, value_dim = extents(rng, 3, 1, 3)
    return heads_of_attention(rng, lambda options: (
        layers.MultiHeadAttention(heads, key_dim, value_dim, **options),
        {"num_heads": heads, "key_dim": key_dim, "value_dim": value_dim}))


def group_query_attention(rng):
    dim, heads, group = extents(rng, 3, 1, 3)
    return heads_of_attention(rng, lambda options: (
        layers.GroupQueryAttention(dim, heads * group, heads, **options),
        {"head_dim": dim, "num_query_heads": heads * group, "num_key_value_heads": heads}))


def plain_attention(rng, make, modes=(None,)):
    mode = modes[rng.integers(len(modes))]
    use_scale, causal, has_padding, values = flag(rng), flag(rng), flag(rng), int(rng.integers(2, 4))
    config = {} if mode is None else {"score_mode": mode}
    layer = make(use_scale=use_scale, **config)
    names = ["scale"] * use_scale + ["concat_score_weight"] * (mode == "concat")

    def call(layer, inputs):
        options = {"mask": [None, is_kept(inputs[-1])]} if has_padding else {}
        return layer(list(inputs[:values]), use_causal_mask=causal, **options)

    queries, keys, width = extents(rng, 3, 1, 4)
    shapes = [(queries, width), (keys, int(rng.integers(1, 4)) if values == 3 else width), (keys, width)][:values]
    config |= {"use_scale": use_scale, "dropout": 0.0, "use_causal_mask": causal, "padding_mask": has_padding,
               "return_attention_scores": False}
    return case(Called(layer, names, call), config, *shapes, *[(keys,)] * has_padding,
                prepare=with_masks(has_padding, keeps_first=True))


def attention(rng):
    return plain_attention(rng, layers.Attention, ("dot", "concat"))


def additive_attention(rng):
    return plain_attention(rng, layers.AdditiveAttention)


# Without a kink: a gradient by differences would be that of another side.
SMOOTH = ("linear", "tanh", "sigmoid")


def recurrent_options(rng, make):
    name = make.__name__
    units, width = extents(rng, 2, 1, 3)
    bias, whole = flag(rng), flag(rng)
    options = {"activation": SMOOTH[rng.integers(3)], "use_bias": bias, "return_sequences": whole}
    config = {"units": units, **options, "return_state": False, "go_backwards": False, "dropout": 0.0,
              "kernel_initializer": "glorot_uniform", "recurrent_initializer": "orthogonal(1)",
              "bias_initializer": "zeros"}
    if name != "SimpleRNN":
        # Linear gates would let the state grow without bound.
        options["recurrent_activation"] = config["recurrent_activation"] = ("sigmoid", "tanh")[rng.integers(2)]
    if name == "LSTM":
        config["unit_forget_bias"] = True
    names = ["cell/kernel", "cell/recurrent_kernel"] + ["cell/bias"] * bias
    return units, width, options, config, names


def recurrent(make):
    def made(rng):
        units, width, options, config, names = recurrent_options(rng, make)
        backwards, has_state, has_mask = flag(rng), flag(rng), flag(rng)
        states = (2 if make.__name__ == "LSTM" else 1) * has_state

        def call(layer, inputs):
            given = {"initial_state": list(inputs[1:1 + states])} if states else {}
            return layer(inputs[0], mask=is_kept(inputs[-1]) if has_mask else None, **given)

        steps = int(rng.integers(1, 5))
        return case(Called(make(units, go_backwards=backwards, **options), names, call),
                    config | {"go_backwards": backwards, "mask": has_mask}, (steps, width), *[(units,)] * states,
                    *[(steps,)] * has_mask, prepare=with_masks(has_mask))

    return made


def bidirectional(rng):
    make = (layers.SimpleRNN, layers.LSTM, layers.GRU)[rng.integers(3)]
    units, width, options, config, names = recurrent_options(rng, make)
    mode, has_state, has_mask = ("concat", "sum", "mul", "ave")[rng.integers(4)], flag(rng), flag(rng)
    states = (4 if make.__name__ == "LSTM" else 2) * has_state
    names = [f"{direction}_layer/{name}" for direction in ("forward", "backward") for name in names]

    def call(layer, inputs):
        given = {"initial_state": list(inputs[1:1 + states])} if states else {}
        return layer(inputs[0], mask=is_kept(inputs[-1]) if has_mask else None, **given)

    steps = int(rng.integers(1, 5))
    return case(Called(layers.Bidirectional(make(units, **options), merge_mode=mode), names, call),
                config | {"layer": make.__name__, "merge_mode": mode, "mask": has_mask}, (steps, width),
                *[(units,)] * states, *[(steps,)] * has_mask, prepare=with_masks(has_mask))


class Positions(layers.Layer):
    """keras_hub.layers.PositionEmbedding for sequences up to its length."""

    def __init__(self, length):
        super().__init__()
        self.length = length

    def build(self, shape):
        self.embeddings = self.add_weight(name="embeddings", shape=(self.length, shape[-1]))

    def call(self, x):
        return keras.ops.broadcast_to(keras.ops.convert_to_tensor(self.embeddings)[:x.shape[-2]], x.shape)


def position_embedding(rng):
    length = int(rng.integers(1, 5))
    shape = extents(rng, rng.integers(0, 2), 1, 3) + (int(rng.integers(1, length + 1)), int(rng.integers(1, 4)))
    return case(Positions(length), {"sequence_length": length, "initializer": "glorot_uniform"}, shape)


def sine_position_encoding(rng):
    """keras_hub.layers.SinePositionEncoding (Vaswani et al., 2017)."""
    wavelength = number(rng, 1, 100)

    def function(x):
        steps, width = x.shape[-2:]
        i = np.arange(width)
        angles = np.arange(steps)[:, None] * (1 / wavelength) ** (2 * (i // 2) / width)
        return np.broadcast_to(np.where(i % 2 == 0, np.sin(angles), np.cos(angles)), x.shape)

    return case(Function(function), {"max_wavelength": wavelength}, extents(rng, rng.integers(2, 4)))


def rotary_embedding(rng):
    """keras_hub.layers.RotaryEmbedding (Su et al., 2021)."""
    wavelength, factor = number(rng, 1, 100), number(rng, 0.5, 2)

    def function(x):
        half = x.shape[-1] // 2
        angles = np.arange(x.shape[1])[:, None] / factor / wavelength ** (np.arange(half) / half)
        angles = np.concatenate([angles, angles], axis=-1)
        angles = angles.reshape((x.shape[1],) + (1,) * (x.ndim - 3) + (2 * half,))
        turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
        return x * np.cos(angles) + turned * np.sin(angles)

    return case(Function(function), {"max_wavelength": wavelength, "scaling_factor": factor},
                extents(rng, rng.integers(1, 3)) + (2 * int(rng.integers(1, 3)),))


MAKERS = {
    "AdditiveAttention": additive_attention, "Attention": attention, "Bidirectional": bidirectional,
    "GRU": recurrent(layers.GRU), "GroupQueryAttention": group_query_attention, "LSTM": recurrent(layers.LSTM),
    "MultiHeadAttention": multi_head_attention, "PositionEmbedding": position_embedding,
    "RotaryEmbedding": rotary_embedding, "SimpleRNN": recurrent(layers.SimpleRNN),
    "SinePositionEncoding": sine_position_encoding,
    "Add": merge(layers.Add), "AlphaDropout": random(layers.AlphaDropout, "rate"), "Average": merge(layers.Average),
    "Concatenate": concatenate,
    "Cropping1D": margins(layers.Cropping1D, "cropping", 1), "Cropping2D": margins(layers.Cropping2D, "cropping", 2),
    "Cropping3D": margins(layers.Cropping3D, "cropping", 3), "Dense": dense, "Dot": dot,
    "Dropout": random(layers.Dropout, "rate"), "ELU": elu, "Embedding": embedding, "Flatten": flatten,
    "GaussianDropout": random(layers.GaussianDropout, "rate"), "GaussianNoise": random(layers.GaussianNoise, "stddev"),
    "AdaptiveAveragePooling": adaptive_pooling("Average"), "AdaptiveMaxPooling": adaptive_pooling("Max"),
    "EinsumDense": einsum_dense, "UnitNormalization": unit_normalization,
    "GlobalAveragePooling": global_pooling("Average"), "GlobalMaxPooling": global_pooling("Max"),
    "GroupNormalization": group_normalization, "LayerNormalization": layer_normalization, "LeakyReLU": leaky_relu,
    "Maximum": merge(layers.Maximum), "Minimum": merge(layers.Minimum),
    "Multiply": merge(layers.Multiply), "Normalization": normalization, "PReLU": prelu, "Permute": permute,
    "RMSNormalization": rms_normalization, "ReLU": relu, "RepeatVector": repeat_vector, "Rescaling": rescaling,
    "Reshape": reshape, "ReversibleEmbedding": reversible_embedding, "Softmax": softmax,
    "SpatialDropout1D": random(layers.SpatialDropout1D, "rate"),
    "SpatialDropout2D": random(layers.SpatialDropout2D, "rate"),
    "SpatialDropout3D": random(layers.SpatialDropout3D, "rate"), "Subtract": merge(layers.Subtract, 2, 2),
    "UpSampling1D": up_sampling(layers.UpSampling1D, 1), "UpSampling2D": up_sampling(layers.UpSampling2D, 2),
    "UpSampling3D": up_sampling(layers.UpSampling3D, 3), "ZeroPadding1D": margins(layers.ZeroPadding1D, "padding", 1),
    "ZeroPadding2D": margins(layers.ZeroPadding2D, "padding", 2),
    "ZeroPadding3D": margins(layers.ZeroPadding3D, "padding", 3),
}
for rank in (1, 2, 3):
    for name in (f"AveragePooling{rank}D", f"MaxPooling{rank}D"):
        MAKERS[name] = pooling(getattr(layers, name), rank)
    MAKERS[f"Conv{rank}D"] = convolution(getattr(layers, f"Conv{rank}D"), rank)
    MAKERS[f"Conv{rank}DTranspose"] = convolution(getattr(layers, f"Conv{rank}DTranspose"), rank, is_transposed=True)
for rank in (1, 2):
    MAKERS[f"DepthwiseConv{rank}D"] = depthwise(getattr(layers, f"DepthwiseConv{rank}D"), rank)
    MAKERS[f"SeparableConv{rank}D"] = depthwise(getattr(layers, f"SeparableConv{rank}D"), rank, is_separable=True)

# After the cases above, half as many with options that most models leave alone.
FURTHER = {"LayerNormalization": normalization_of_axes, "UpSampling2D": bilinear}


def draw(rng, shape):
    """Different odd multiples of 1/64: exact in f32, few digits, no equal ones, and never on a kink of a function."""
    odd = np.arange(-255, 256, 2)
    count = int(np.prod(shape))
    return (rng.choice(odd, count, replace=count > len(odd)) / 64).reshape(shape)


def as_text(array):
    array = np.asarray(array)
    if array.dtype == np.int32:
        return {"dtype": "i32", "shape": list(array.shape), "values": array.reshape(-1).tolist()}
    return {"shape": list(array.shape), "values": [float(f"{value:.9g}") for value in array.reshape(-1)]}


def changed(arguments, index, place, change):
    copy = arguments[index].copy()
    copy.reshape(-1)[place] += change
    return arguments[:index] + [copy] + arguments[index + 1:]


def with_magnitudes(rng, function, arguments):
    """The results of a function of a list of arrays, as text."""
    results = function(arguments)
    step = 2.0**-12
    sizes = [0.0] * len(results)
    for _ in range(4):
        moved = function([a * (1 + step * rng.choice([-1, 1], a.shape)) for a in arguments])
        for i, (after, before) in enumerate(zip(moved, results)):
            sizes[i] = max(sizes[i], float(np.abs(after - before).max()) / step)
    return [as_text(r) | {"magnitude": float(f"{size + np.abs(r).max():.4g}")} for r, size in zip(results, sizes)]


def solve(rng, made, mode):
    layer = made["layer"]
    samples = 3 if mode == "training" and made["buffers"] else int(rng.integers(1, 3))
    # All numbers of all inputs differ, so that none is larger than another by nothing.
    shapes = [(samples,) + tuple(shape) for shape in made["shapes"]]
    joined = draw(rng, (sum(int(np.prod(shape)) for shape in shapes),))
    inputs, begin = [], 0
    for shape in shapes:
        count = int(np.prod(shape))
        inputs.append(joined[begin:begin + count].reshape(shape))
        begin += count
    if made["integers"]:
        inputs = [rng.integers(0, made["integers"], shape, np.int32) for shape in shapes]
    inputs = made["prepare"](rng, inputs)
    layer.build([tuple(shape) for shape in shapes] if len(shapes) > 1 else shapes[0])
    for variable in layer.variables:
        variable.assign(np.asarray(variable.value, np.float64) if "float" in variable.dtype else variable.value)
    # Parameters stay below 1, so that sums of products do not saturate the functions after them.
    # A scalar is an array of one number in Holdfast.
    parameters = [draw(rng, tuple(v.shape) or (1,)) / 4 for v in layer.trainable_variables]
    names = getattr(layer, "names", None) or [v.name for v in layer.trainable_variables]
    moving = [v for v in layer.non_trainable_variables if v.name in made["buffers"]]
    buffers = [np.abs(draw(rng, v.shape)) for v in moving]

    # Integers have no gradient.
    trained = [] if made["integers"] else inputs

    def outputs(arguments):
        for variable, value in zip(layer.trainable_variables, arguments[len(trained):]):
            variable.assign(value.reshape(variable.shape))
        for variable, value in zip(moving, buffers):
            variable.assign(value)
        values = list(arguments[:len(trained)]) or inputs
        options = {"training": mode == "training"} if layer._call_has_training_arg else {}
        result = layer(values if len(values) > 1 else values[0], **options)
        assert result.dtype == np.float64, result.dtype
        return [result]

    arguments = trained + parameters
    text = {
        "mode": mode, "config": made["config"],
        "inputs": [as_text(value) for value in inputs],
        "parameters": {name: as_text(value) for name, value in zip(names, parameters)},
        "buffers": {variable.name: as_text(value) for variable, value in zip(moving, buffers)},
        "output": with_magnitudes(rng, outputs, arguments)[0],
    }
    if mode == "training":
        output_gradient = draw(rng, text["output"]["shape"]) / 4
        step = 2.0**-14

        # Slopes of the sum of output * output_gradient, for each element of an argument.
        def slopes(given, i, g):
            found = np.zeros(given[i].size)
            for place in range(given[i].size):
                above, below = (outputs(changed(given, i, place, sign * step))[0] for sign in (1, -1))
                found[place] = ((above - below) * g).sum() / (2 * step)
            return found.reshape(given[i].shape)

        # The same for an input of a layer that does not mix samples: copies of all samples, each with another element
        # moved, are one batch. Added up over the samples.
        def slopes_of_input(given, i, g):
            count = given[i][0].size
            moves = np.concatenate([np.eye(count), -np.eye(count)]) * step
            batch = [np.concatenate([value] * len(moves)) for value in given[:len(trained)]]
            batch[i] = batch[i] + np.repeat(moves, samples, axis=0).reshape(batch[i].shape)
            above, below = outputs(batch + given[len(trained):])[0].reshape((2, count) + g.shape)
            return ((above - below) * g).reshape(count, -1).sum(axis=1).reshape(given[i].shape[1:]) / (2 * step)

        # Those of inputs are added up over the samples: the test moves an element of all samples at once.
        def gradients(everything):
            given, g = everything[:-1], everything[-1]
            mixes_samples = len(made["buffers"]) > 0
            of_inputs = [slopes(given, i, g).sum(axis=0) if mixes_samples else slopes_of_input(given, i, g)
                         for i in range(len(trained))]
            return of_inputs + [slopes(given, i, g) for i in range(len(trained), len(given))]

        found = with_magnitudes(rng, gradients, arguments + [output_gradient])
        text["output_gradient"] = as_text(output_gradient)
        text["input_gradients"] = found[:len(trained)]
        text["parameter_gradients"] = dict(zip(names, found[len(trained):]))
    return text


def write(kind, makers, folder):
    cases = []
    for i, maker in [*enumerate(makers), *((i, MAKERS[kind]) for i in ALSO.get(kind, ()) if i >= len(makers))]:
        # A kind's cases depend on nothing but its name.
        rng = np.random.default_rng([zlib.crc32(kind.encode()), i])
        made = maker(rng)
        cases.append(solve(rng, made, made["modes"][i % len(made["modes"])]))
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases)
    (folder / f"{kind}.json").write_text(f'{{"kind":"{kind}","cases":[\n{lines}\n]}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=CASES, help="how many of each layer")
    parser.add_argument("--to", type=pathlib.Path, default=FOLDER, help="folder of the files")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    makers = {kind: [maker] * arguments.cases for kind, maker in MAKERS.items()}
    # Each function has cases of its own: of the many, one or two are checked in.
    is_more = arguments.cases > CASES
    functions = [activation(one) for one in range(len(activations(np.random.default_rng(0))))]
    makers["Activation"] = functions * (arguments.cases if is_more else 1)
    # Both modes of each of them.
    makers["BatchNormalization"] = [BATCH_NORMALIZATIONS[one // 2 % 4] for one in range(arguments.cases)]
    for kind, maker in FURTHER.items():
        makers[kind] += [maker] * (arguments.cases // 2)
    makers["Operation"] = OPERATIONS * (arguments.cases if is_more else 2)
    for kind in arguments.kinds or sorted(makers):
        write(kind, makers[kind], arguments.to)
        print(kind, flush=True)


if __name__ == "__main__":
    main()
