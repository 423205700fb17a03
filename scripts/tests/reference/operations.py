"""Operations between layers, which have no counterpart in Keras: they are written down here, in NumPy."""

import math

import numpy as np
from keras import layers

from reference.cases import Function, along_an_axis, broadcast_shapes, case, extents, flag, number


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
