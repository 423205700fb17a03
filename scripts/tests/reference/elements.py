"""Layers of elements and of the last axis, layers that merge or move values, and noise."""

import numpy as np
from keras import layers

from reference.cases import (INFERRED, activations, broadcast_shapes, case, extents, flag, inside_of_support, number,
                             some_activation, with_bias)


def dense(rng):
    units, (text, function) = int(rng.integers(1, 5)), some_activation(rng)
    config = {"units": units, **with_bias(rng, text)}
    return case(layers.Dense(units, activation=function, use_bias=config["use_bias"]), config,
                extents(rng, rng.integers(1, 3)))


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


def flatten(rng):
    return case(layers.Flatten(), {}, extents(rng, rng.integers(1, 4), 1, 3))


def rescaling(rng):
    scale, offset = number(rng, -2, 2), number(rng, -1, 1)
    return case(layers.Rescaling(scale, offset), {"scale": scale, "offset": offset}, extents(rng, 2, 1, 3))


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


def activation(one):
    def make(rng):
        text, function = activations(rng)[one]
        prepare = {"prepare": inside_of_support} if text == "sparsemax" else {}
        return case(layers.Activation(function), {"activation": text}, extents(rng, 2, 2, 3), **prepare)

    return make


def random(kind, key, low=0.1, high=0.9):
    def make(rng):
        rate = number(rng, low, high)
        name = kind.__name__
        rank = int(name[-2]) + 1 if name.endswith("D") else int(rng.integers(1, 4))
        return case(kind(rate), {key: rate}, extents(rng, rank, 1, 3), modes=INFERRED)

    return make


def embedding(rng):
    vocabulary, width = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    return case(layers.Embedding(vocabulary, width),
                {"vocabulary": vocabulary, "width": width, "initializer": "uniform(-0.05,0.05)"},
                extents(rng, rng.integers(1, 3)), integers=vocabulary)


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


MAKERS = {
    "Add": merge(layers.Add), "AlphaDropout": random(layers.AlphaDropout, "rate"), "Average": merge(layers.Average),
    "Concatenate": concatenate, "Dense": dense, "Dot": dot, "Dropout": random(layers.Dropout, "rate"), "ELU": elu,
    "Embedding": embedding, "Flatten": flatten, "GaussianDropout": random(layers.GaussianDropout, "rate"),
    "GaussianNoise": random(layers.GaussianNoise, "stddev"), "EinsumDense": einsum_dense, "LeakyReLU": leaky_relu,
    "Maximum": merge(layers.Maximum), "Minimum": merge(layers.Minimum), "Multiply": merge(layers.Multiply),
    "PReLU": prelu, "Permute": permute, "ReLU": relu, "RepeatVector": repeat_vector, "Rescaling": rescaling,
    "Reshape": reshape, "ReversibleEmbedding": reversible_embedding, "Softmax": softmax,
    "SpatialDropout1D": random(layers.SpatialDropout1D, "rate"),
    "SpatialDropout2D": random(layers.SpatialDropout2D, "rate"),
    "SpatialDropout3D": random(layers.SpatialDropout3D, "rate"), "Subtract": merge(layers.Subtract, 2, 2),
}
