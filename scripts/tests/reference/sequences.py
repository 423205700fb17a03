"""Layers of sequences: attentions, recurrent layers, and what tells a model where a step stands."""

import functools

import keras
import numpy as np
from keras import layers

from reference.cases import Called, Function, case, extents, flag, number


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


def heads_of_attention(rng, make, gives_scores=False):
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
        results = layer(query, value, key=key, use_causal_mask=causal, return_attention_scores=True, **options)
        return results if gives_scores else results[0]

    queries, keys = extents(rng, 2, 1, 4)
    keys = queries if values == 1 else keys
    shapes = [(queries, int(rng.integers(1, 4)))] + [(keys, int(rng.integers(1, 4))) for _ in range(values - 1)]
    shapes += [(queries, keys)] * has_mask + [(keys,)] * has_padding
    config |= {"dropout": 0.0, "use_bias": use_bias, "use_causal_mask": causal, "sliding_window": window,
               "attention_mask": has_mask, "padding_mask": has_padding, "return_attention_scores": gives_scores,
               **ATTENTION_LIMITS}
    return case(Called(layer, names, call), config, *shapes, prepare=with_masks(has_mask + has_padding))


def multi_head_attention(rng, **options_of_case):
    heads, key_dim, value_dim = extents(rng, 3, 1, 3)
    return heads_of_attention(rng, lambda options: (
        layers.MultiHeadAttention(heads, key_dim, value_dim, **options),
        {"num_heads": heads, "key_dim": key_dim, "value_dim": value_dim}), **options_of_case)


def group_query_attention(rng, **options_of_case):
    dim, heads, group = extents(rng, 3, 1, 3)
    return heads_of_attention(rng, lambda options: (
        layers.GroupQueryAttention(dim, heads * group, heads, **options),
        {"head_dim": dim, "num_query_heads": heads * group, "num_key_value_heads": heads}), **options_of_case)


def plain_attention(rng, make, modes=(None,), gives_scores=False):
    mode = modes[rng.integers(len(modes))]
    use_scale, causal, has_padding, values = flag(rng), flag(rng), flag(rng), int(rng.integers(2, 4))
    config = {} if mode is None else {"score_mode": mode}
    layer = make(use_scale=use_scale, **config)
    names = ["scale"] * use_scale + ["concat_score_weight"] * (mode == "concat")

    def call(layer, inputs):
        options = {"mask": [None, is_kept(inputs[-1])]} if has_padding else {}
        return layer(list(inputs[:values]), use_causal_mask=causal, return_attention_scores=gives_scores, **options)

    queries, keys, width = extents(rng, 3, 1, 4)
    shapes = [(queries, width), (keys, int(rng.integers(1, 4)) if values == 3 else width), (keys, width)][:values]
    config |= {"use_scale": use_scale, "dropout": 0.0, "use_causal_mask": causal, "padding_mask": has_padding,
               "return_attention_scores": gives_scores}
    return case(Called(layer, names, call), config, *shapes, *[(keys,)] * has_padding,
                prepare=with_masks(has_padding, keeps_first=True))


def attention(rng, **options):
    return plain_attention(rng, layers.Attention, ("dot", "concat"), **options)


def additive_attention(rng, **options):
    return plain_attention(rng, layers.AdditiveAttention, **options)


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


# No draw is below it, and 1 - rate is 1: training computes step by step, with masks of ones.
TINY_RATE = 2.0**-100


def rare_options(rng, make):
    """Options with which Holdfast computes step by step: those of Keras, and those of a file."""
    if make is layers.GRU and rng.integers(3) > 0:
        return {"reset_after": False}, {"reset_after": False} | ({"recurrent_dropout": TINY_RATE} if flag(rng) else {})
    return {}, {"recurrent_dropout": TINY_RATE}


def recurrent(make, is_rare=False, gives_states=False):
    def made(rng):
        units, width, options, config, names = recurrent_options(rng, make)
        backwards, has_state, has_mask = flag(rng), flag(rng), flag(rng)
        if is_rare:
            of_keras, of_file = rare_options(rng, make)
            options, config = options | of_keras, config | of_file
        states = (2 if make.__name__ == "LSTM" else 1) * has_state

        def call(layer, inputs):
            given = {"initial_state": list(inputs[1:1 + states])} if states else {}
            return layer(inputs[0], mask=is_kept(inputs[-1]) if has_mask else None, **given)

        steps = int(rng.integers(1, 5))
        return case(Called(make(units, go_backwards=backwards, return_state=gives_states, **options), names, call),
                    config | {"go_backwards": backwards, "return_state": gives_states, "mask": has_mask}, (steps, width), *[(units,)] * states,
                    *[(steps,)] * has_mask, prepare=with_masks(has_mask))

    return made


def bidirectional(rng, is_rare=False, gives_states=False):
    make = (layers.SimpleRNN, layers.LSTM, layers.GRU)[rng.integers(3)]
    units, width, options, config, names = recurrent_options(rng, make)
    mode, has_state, has_mask = ("concat", "sum", "mul", "ave")[rng.integers(4)], flag(rng), flag(rng)
    states = (4 if make.__name__ == "LSTM" else 2) * has_state
    if is_rare:
        of_keras, of_file = rare_options(rng, make)
        options, config = options | of_keras, config | of_file
    names = [f"{direction}_layer/{name}" for direction in ("forward", "backward") for name in names]

    def call(layer, inputs):
        given = {"initial_state": list(inputs[1:1 + states])} if states else {}
        return layer(inputs[0], mask=is_kept(inputs[-1]) if has_mask else None, **given)

    steps = int(rng.integers(1, 5))
    wrapped = make(units, return_state=gives_states, **options)
    return case(Called(layers.Bidirectional(wrapped, merge_mode=mode), names, call),
                config | {"layer": make.__name__, "merge_mode": mode, "return_state": gives_states, "mask": has_mask},
                (steps, width),
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
}
# The same with options that most models leave alone.
RARE = {
    "Bidirectional": lambda rng: bidirectional(rng, is_rare=True),
    **{kind.__name__: recurrent(kind, is_rare=True) for kind in (layers.GRU, layers.LSTM, layers.SimpleRNN)},
}
# With the scores of an attention, and the last states of a recurrent layer, as further outputs.
OUTPUTS = {
    **{kind: functools.partial(MAKERS[kind], gives_scores=True)
       for kind in ("AdditiveAttention", "Attention", "GroupQueryAttention", "MultiHeadAttention")},
    "Bidirectional": functools.partial(bidirectional, gives_states=True),
    **{kind.__name__: recurrent(kind, gives_states=True) for kind in (layers.GRU, layers.LSTM, layers.SimpleRNN)},
}
