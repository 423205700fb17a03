"""Normalizations, over a batch and over the axes of a sample."""

import numpy as np
from keras import layers

from reference.cases import BOTH, AlongAxis, case, extents, flag, number


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


def unit_normalization(rng):
    shape = extents(rng, rng.integers(1, 4), 1, 4)
    axes = sorted(int(axis) for axis in rng.choice(len(shape), rng.integers(1, len(shape) + 1), replace=False))
    return case(layers.UnitNormalization(axis=[axis + 1 for axis in axes]), {"axis": axes}, shape)


MAKERS = {
    "UnitNormalization": unit_normalization, "GroupNormalization": group_normalization,
    "LayerNormalization": layer_normalization, "Normalization": normalization, "RMSNormalization": rms_normalization,
}
