"""What the cases of all layers share.

A maker takes a generator of NumPy and returns a case: a Keras layer, the configuration in a file, shapes of a sample of each
input, and the modes."""

import keras
import numpy as np
from keras import layers

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


def draw(rng, shape):
    """Different odd multiples of 1/64: exact in f32, few digits, no equal ones, and never on a kink of a function."""
    odd = np.arange(-255, 256, 2)
    count = int(np.prod(shape))
    return (rng.choice(odd, count, replace=count > len(odd)) / 64).reshape(shape)


def broadcast_shapes(rng, count):
    """Shapes of equal rank, each of which may have an extent of 1 instead of the common one."""
    common = extents(rng, rng.integers(1, 4), 1, 3)
    return [tuple(1 if rng.integers(4) == 0 else n for n in common) for _ in range(count)]


def along_an_axis(rng):
    shape = extents(rng, rng.integers(1, 4), 1, 3)
    return shape, int(rng.integers(len(shape)))


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
        results = self.call(self.layer, values if isinstance(values, list) else [values])
        return [np.asarray(one) for one in results] if isinstance(results, (list, tuple)) else np.asarray(results)
