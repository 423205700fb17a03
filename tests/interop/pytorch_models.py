"""Models of pytorch_test.py: each in Keras and in PyTorch, with modules that have the names of the layers."""

import keras
import torch
from keras import layers
from torch import nn
from torch.nn import functional


class Called(nn.Module):
    """Modules by the names of layers, and what is computed with them."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x):
        return self.function(self, x)


def sequence_of(make, ours, **options):
    """A recurrent layer that returns its sequence, in Keras and in PyTorch."""
    x = keras.Input((5, 4), name="x")
    both_ways = options.get("bidirectional", False)
    layer = ours if not both_ways else layers.Bidirectional(ours, name="rnn")
    return keras.Model(x, layer(x)), Called(lambda m, x: m.rnn(x)[0], rnn=make(4, 3, batch_first=True, **options))


def recurrent(make, kind, both_ways=False, **options):
    ours = kind(3, return_sequences=True, name="rnn", **options)
    theirs = {"nonlinearity": "relu"} if options.get("activation") == "relu" else {}
    return sequence_of(make, ours, bias=options.get("use_bias", True), bidirectional=both_ways, **theirs)


def attention(use_bias=True, width=8, causal=False):
    x = keras.Input((5, 8), name="x")
    value = x if width == 8 else layers.Dense(width, name="value")(x)
    y = layers.MultiHeadAttention(2, 4, use_bias=use_bias, name="attention")(x, value, use_causal_mask=causal)

    def forward(m, x):
        value = x if width == 8 else m.value(x)
        # True where a key is masked.
        mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
        return m.attention(x, value, value, attn_mask=mask, need_weights=False)[0]

    modules = {"attention": nn.MultiheadAttention(8, 2, bias=use_bias, kdim=width, vdim=width, batch_first=True)}
    if width != 8:
        modules["value"] = nn.Linear(8, width)
    return keras.Model(x, y), Called(forward, **modules)


def grouped_attention():
    """The modules of Hugging Face's LlamaAttention."""
    x = keras.Input((5, 6), name="x")
    model = keras.Model(x, layers.GroupQueryAttention(3, 4, 2, name="attention")(x, x))
    attention = nn.ModuleDict({"q_proj": nn.Linear(6, 12), "k_proj": nn.Linear(6, 6), "v_proj": nn.Linear(6, 6),
                               "o_proj": nn.Linear(12, 6)})

    def forward(m, x):
        q, k, v = (m.attention[f"{part}_proj"](x).unflatten(-1, (-1, 3)).transpose(1, 2) for part in "qkv")
        heads = functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return m.attention["o_proj"](heads.transpose(1, 2).flatten(2))

    return model, Called(forward, attention=attention)


def encoder():
    """A block of a transformer, with a recurrent layer whose outputs are flattened after a convolution."""
    x = keras.Input((6, 4), name="x")
    y = layers.Conv1D(8, 3, padding="same", name="conv")(x)
    y = layers.Add()([y, layers.MultiHeadAttention(4, 2, name="attention")(y, y)])
    y = layers.LayerNormalization(epsilon=1e-5, name="norm")(y)
    y = layers.Bidirectional(layers.GRU(3, return_sequences=True), name="rnn")(y)
    model = keras.Model(x, layers.Dense(2, name="scores")(layers.Flatten()(y)))

    def forward(m, x):
        y = m.conv(x.transpose(1, 2)).transpose(1, 2)
        y = m.norm(y + m.attention(y, y, y, need_weights=False)[0])
        return m.scores(m.rnn(y)[0].flatten(1))

    return model, Called(forward, conv=nn.Conv1d(4, 8, 3, padding="same"), norm=nn.LayerNorm(8),
                         attention=nn.MultiheadAttention(8, 4, batch_first=True),
                         rnn=nn.GRU(8, 3, batch_first=True, bidirectional=True), scores=nn.Linear(36, 2))


class Conv1D(nn.Module):
    """That of Hugging Face's transformers: a Linear whose weight is not transposed."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / 4)
        self.bias = nn.Parameter(torch.randn(outputs) / 4)

    def forward(self, x):
        return x @ self.weight + self.bias


def gpt2():
    """A block of transformers.GPT2Model after the sum of its embeddings."""
    x = keras.Input((5, 8), name="x")
    y = layers.LayerNormalization(epsilon=1e-5, name="ln_1")(x)
    y = x + layers.MultiHeadAttention(2, 4, name="attn")(y, y, use_causal_mask=True)
    z = layers.Dense(32, activation="gelu", name="c_fc")(layers.LayerNormalization(epsilon=1e-5, name="ln_2")(y))
    model = keras.Model(x, y + layers.Dense(8, name="c_proj")(z))

    def attend(m, x):
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in m["c_attn"](x).split(8, dim=2))
        heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return m["c_proj"](heads.transpose(1, 2).flatten(2))

    def forward(m, x):
        y = x + attend(m.attn, m.ln_1(x))
        return y + m.c_proj(functional.gelu(m.c_fc(m.ln_2(y))))

    return model, Called(forward, ln_1=nn.LayerNorm(8), ln_2=nn.LayerNorm(8), c_fc=Conv1D(8, 32), c_proj=Conv1D(32, 8),
                         attn=nn.ModuleDict({"c_attn": Conv1D(8, 24), "c_proj": Conv1D(8, 8)}))


def stacked(make, kind, both_ways=False):
    """Two layers, which are one module."""
    x = y = keras.Input((5, 4), name="x")
    for number in range(2):
        name = f"rnn_l{number}"
        layer = kind(3, return_sequences=True, name="cell" if both_ways else name)
        y = layers.Bidirectional(layer, name=name)(y) if both_ways else layer(y)
    rnn = make(4, 3, num_layers=2, batch_first=True, bidirectional=both_ways)
    return keras.Model(x, y), Called(lambda m, x: m.rnn(x)[0], rnn=rnn)


MODELS = {
    "lstm": lambda: recurrent(nn.LSTM, layers.LSTM),
    "lstm without a bias": lambda: recurrent(nn.LSTM, layers.LSTM, use_bias=False),
    "lstm both ways": lambda: recurrent(nn.LSTM, layers.LSTM, both_ways=True),
    "two lstms": lambda: stacked(nn.LSTM, layers.LSTM),
    "two lstms both ways": lambda: stacked(nn.LSTM, layers.LSTM, both_ways=True),
    "two grus": lambda: stacked(nn.GRU, layers.GRU),
    "gru": lambda: recurrent(nn.GRU, layers.GRU),
    "gru both ways": lambda: recurrent(nn.GRU, layers.GRU, both_ways=True),
    "rnn": lambda: recurrent(nn.RNN, layers.SimpleRNN),
    "rnn of relu both ways": lambda: recurrent(nn.RNN, layers.SimpleRNN, both_ways=True, activation="relu"),
    "attention": attention,
    "causal attention": lambda: attention(causal=True),
    "attention without a bias": lambda: attention(use_bias=False),
    "attention to another width": lambda: attention(width=6),
    "grouped attention": grouped_attention,
    "encoder": encoder,
    "gpt2": gpt2,
}



class Gpt2(nn.Module):
    """transformers.GPT2Model with the scores of GPT2LMHeadModel, which are products with its table of ids."""

    def __init__(self, vocabulary, positions=64, width=128, blocks=4, heads=4):
        super().__init__()
        self.heads = heads
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.h = nn.ModuleList(
            nn.ModuleDict({
                "ln_1": nn.LayerNorm(width), "ln_2": nn.LayerNorm(width),
                "attn": nn.ModuleDict({"c_attn": Conv1D(width, 3 * width), "c_proj": Conv1D(width, width)}),
                "mlp": nn.ModuleDict({"c_fc": Conv1D(width, 4 * width), "c_proj": Conv1D(4 * width, width)}),
            })  # fmt: skip
            for _ in range(blocks)
        )
        self.ln_f = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            q, k, v = (
                part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for part in block["attn"]["c_attn"](block["ln_1"](x)).chunk(3, dim=2)
            )
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
            x = x + block["attn"]["c_proj"](seen)
            inner = functional.gelu(block["mlp"]["c_fc"](block["ln_2"](x)), approximate="tanh")
            x = x + block["mlp"]["c_proj"](inner)
        return self.ln_f(x) @ self.wte.weight.T


class LstmLanguageModel(nn.Module):
    """lstm_language_model() of Holdfast."""

    def __init__(self, vocabulary, width=256):
        super().__init__()
        self.words, self.scores = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.lstm = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(2))

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.lstm:
            x = layer(x)[0]
        return self.scores(x)


class EncoderDecoder(nn.Module):
    """encoder_decoder() of Holdfast with one block, where the id 0 of the source is padding."""

    def __init__(self, vocabulary, width=32, heads=4):
        super().__init__()

        def block(attentions):
            names = [f"{name}_norm" for name in (*attentions, "wide")]
            return nn.ModuleDict({
                **{name: nn.MultiheadAttention(width, heads, batch_first=True) for name in attentions},
                **{name: nn.LayerNorm(width) for name in names},
                "wide": nn.Linear(width, 4 * width), "narrow": nn.Linear(4 * width, width),
            })  # fmt: skip

        self.source_words, self.target_words = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
        self.encoder, self.decoder = (
            nn.ModuleList([block(attentions)]) for attentions in (["attention"], ["attention", "source_attention"])
        )
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.scores = nn.Linear(width, vocabulary)

    def forward(self, source, target):
        padding = source == 0

        def placed(words, ids):
            length, width = ids.shape[1], words.weight.shape[1]
            even = torch.arange(0, width, 2) / width
            angles = torch.arange(length)[:, None] / 10000**even
            waves = torch.stack([torch.sin(angles), torch.cos(angles)], dim=2).flatten(1)
            return words(ids) * width**0.5 + waves

        def fed(block, x):
            return x + block["narrow"](functional.relu(block["wide"](block["wide_norm"](x))))

        (block,) = self.encoder
        read = placed(self.source_words, source)
        y = block["attention_norm"](read)
        read = read + block["attention"](y, y, y, key_padding_mask=padding, need_weights=False)[0]
        read = self.encoder_norm(fed(block, read))

        (block,) = self.decoder
        written = placed(self.target_words, target)
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        y = block["attention_norm"](written)
        written = written + block["attention"](y, y, y, attn_mask=later, need_weights=False)[0]
        y = block["source_attention_norm"](written)
        written = written + block["source_attention"](y, read, read, key_padding_mask=padding, need_weights=False)[0]
        return self.scores(self.decoder_norm(fed(block, written)))
