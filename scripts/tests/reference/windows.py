"""Layers that go over positions: convolutions, pooling, margins and enlargement."""

import numpy as np
from keras import layers

from reference.cases import case, extents, flag, some_activation, with_bias


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


def global_pooling(name):
    def make(rng):
        rank, keeps = int(rng.integers(1, 4)), flag(rng)
        layer = getattr(layers, f"Global{name}Pooling{rank}D")(keepdims=keeps)
        return case(layer, {"keepdims": keeps}, extents(rng, rank, 1, 3) + extents(rng, 1))

    return make


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


MAKERS = {
    "Cropping1D": margins(layers.Cropping1D, "cropping", 1), "Cropping2D": margins(layers.Cropping2D, "cropping", 2),
    "Cropping3D": margins(layers.Cropping3D, "cropping", 3), "AdaptiveAveragePooling": adaptive_pooling("Average"),
    "AdaptiveMaxPooling": adaptive_pooling("Max"), "GlobalAveragePooling": global_pooling("Average"),
    "GlobalMaxPooling": global_pooling("Max"), "UpSampling1D": up_sampling(layers.UpSampling1D, 1),
    "UpSampling2D": up_sampling(layers.UpSampling2D, 2), "UpSampling3D": up_sampling(layers.UpSampling3D, 3),
    "ZeroPadding1D": margins(layers.ZeroPadding1D, "padding", 1),
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
