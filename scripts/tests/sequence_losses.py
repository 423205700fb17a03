#!/usr/bin/env python3
"""sequence_losses.py [--build FOLDER]: trains the models of holdfast/nn/models.h in PyTorch, 50 steps of Adam from the
weights and on the batches of sequence_run_program. It writes the losses of PyTorch in f64 to
tests/integration/models/sequence_losses.json, which a test compares with Holdfast's, and prints how far those of
Holdfast, and of PyTorch in f32, are from them.

The models are written down anew here, from their descriptions: GPT-2 and the encoder-decoder with the normalization
first, and LSTMs with the gates i, f, c, o side by side.

Packages: torch (on CPUs) and numpy. Exit code: 0; 1 if a loss of Holdfast is further off than the test allows.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from residual_losses import arrays_in

STEPS, BATCH = 50, 8
ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULT = ROOT / "tests/integration/models/sequence_losses.json"


class Network(nn.Module):
    """A model by its arrays, whose names in the savepoint have slashes and dots."""

    def __init__(self, weights, dtype):
        super().__init__()
        self.arrays = {name.removeprefix("model/"): nn.Parameter(array.to(dtype))
                       for name, array in weights.items() if name.startswith("model/")}

    def parameters(self, recurse=True):
        return iter(self.arrays.values())

    def dense(self, x, name):
        return x @ self.arrays[f"{name}/kernel"] + self.arrays[f"{name}/bias"]

    def normalized(self, x, name):
        return functional.layer_norm(x, x.shape[-1:], self.arrays[f"{name}/gamma"], self.arrays[f"{name}/beta"])

    def attention(self, x, source, name, hidden=None):
        """`hidden` is True where a position of x must not see one of the source."""
        def heads(values, part):
            kernel, bias = (self.arrays[f"{name}/{part}_dense/{kind}"] for kind in ("kernel", "bias"))
            return torch.einsum("btd,dhk->bhtk", values, kernel) + bias[:, None, :]

        query, key, value = heads(x, "query"), heads(source, "key"), heads(source, "value")
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        if hidden is not None:
            scores = scores.masked_fill(hidden, -math.inf)
        seen = torch.softmax(scores, -1) @ value
        kernel, bias = (self.arrays[f"{name}/output_dense/{kind}"] for kind in ("kernel", "bias"))
        return torch.einsum("bhtk,hkd->btd", seen, kernel) + bias


def later(length):
    return torch.ones(length, length, dtype=torch.bool).triu(1)


class Gpt2(Network):
    def forward(self, ids):
        words = self.arrays["wte/embeddings"]
        x = words[ids] + self.arrays["wpe/embeddings"]
        for block in ("h.0", "h.1"):
            y = self.normalized(x, f"{block}.ln_1")
            x = x + self.attention(y, y, f"{block}.attn", later(ids.shape[1]))
            y = functional.gelu(self.dense(self.normalized(x, f"{block}.ln_2"), f"{block}.mlp.c_fc"), approximate="tanh")
            x = x + self.dense(y, f"{block}.mlp.c_proj")
        return self.normalized(x, "ln_f") @ words.T


class Lstm(Network):
    def forward(self, ids):
        x = self.arrays["words/embeddings"][ids]
        for layer in ("lstm.0", "lstm.1"):
            kernel, recurrent, bias = (self.arrays[f"{layer}/cell/{kind}"]
                                       for kind in ("kernel", "recurrent_kernel", "bias"))
            h = c = torch.zeros(len(x), len(recurrent), dtype=x.dtype)
            outputs = []
            for step in range(x.shape[1]):
                i, f, g, o = (x[:, step] @ kernel + h @ recurrent + bias).chunk(4, dim=-1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                outputs.append(h)
            x = torch.stack(outputs, dim=1)
        return self.dense(x, "scores")


class EncoderDecoder(Network):
    def words(self, ids, name):
        table = self.arrays[f"{name}_words/embeddings"]
        width = table.shape[1]
        rates = 10000.0 ** (-2 * (torch.arange(width) // 2).to(torch.float64) / width)
        angles = torch.arange(ids.shape[1]).to(torch.float64)[:, None] * rates
        waves = torch.where(torch.arange(width) % 2 == 0, angles.sin(), angles.cos())
        return table[ids] * math.sqrt(width) + waves.to(table.dtype)

    def forward_part(self, x, name):
        y = torch.relu(self.dense(self.normalized(x, f"{name}.wide_norm"), f"{name}.wide"))
        return x + self.dense(y, f"{name}.narrow")

    def forward(self, source, target):
        padding = (source == 0)[:, None, None, :]
        x = self.words(source, "source")
        for block in ("encoder.0", "encoder.1"):
            y = self.normalized(x, f"{block}.attention_norm")
            # A position that is padding sees the others, and nobody sees it.
            x = self.forward_part(x + self.attention(y, y, f"{block}.attention", padding), block)
        read = self.normalized(x, "encoder_norm")
        x = self.words(target, "target")
        for block in ("decoder.0", "decoder.1"):
            y = self.normalized(x, f"{block}.attention_norm")
            x = x + self.attention(y, y, f"{block}.attention", later(target.shape[1]))
            y = self.normalized(x, f"{block}.source_attention_norm")
            x = self.forward_part(x + self.attention(y, read, f"{block}.source_attention", padding), block)
        return self.dense(self.normalized(x, "decoder_norm"), "scores")


# The class of each model, the names of its inputs, and the target that is not a label.
MODELS = {"gpt2": (Gpt2, ("ids",), -100), "lstm": (Lstm, ("ids",), -100),
          "encoder_decoder": (EncoderDecoder, ("source", "target"), 0)}


def losses_of(kind, weights, inputs, targets, ignored, dtype):
    network = kind(weights, dtype)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3, eps=1e-12)
    losses = []
    for step in range(STEPS):
        batch = slice(step * BATCH, (step + 1) * BATCH)
        optimizer.zero_grad()
        scores = network(*(array[batch] for array in inputs))
        loss = functional.cross_entropy(scores.flatten(0, 1), targets[batch].flatten(), ignore_index=ignored)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def largest_differences(losses, expected):
    """Relative to the expected ones: of step 1, and of the rest."""
    differences = np.abs(np.array(losses) / np.array(expected) - 1)
    return float(differences[0]), float(differences[1:].max())


def ids_in(path, dtype):
    array = np.fromfile(path, dtype).reshape(STEPS * BATCH, -1)
    return torch.from_numpy(array.astype(np.int64))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default=ROOT / "build/release", type=pathlib.Path, help="folder of the build")
    programs = parser.parse_args().build / "bin"
    torch.set_num_threads(1)
    written, is_close = {}, True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([programs / "sequence_run_program", folder], check=True)
        ours = json.loads((folder / "runs.json").read_text())
        for model, (kind, names, ignored) in MODELS.items():
            arrays = folder / f"{model}.safetensors"
            subprocess.run([programs / "holdfast", "convert", folder / f"{model}.h5", arrays], check=True,
                           stdout=subprocess.DEVNULL)
            data = (arrays_in(arrays), [ids_in(folder / f"{model}.{name}.bin", np.int32) for name in names],
                    ids_in(folder / f"{model}.next.bin", np.float32), ignored)
            written[model] = losses_of(kind, *data, dtype=torch.float64)
            for contender, losses in (("Holdfast", ours[model]),
                                      ("PyTorch in f32", losses_of(kind, *data, dtype=torch.float32))):
                first, rest = largest_differences(losses, written[model])
                is_close &= contender != "Holdfast" or (first <= 1e-6 and rest <= 1e-4)
                print(f"{model}: {contender} at step 1 {first:.1e}, to step 50 {rest:.1e}")
    losses = ",\n".join(f'{json.dumps(model)}: {json.dumps(losses)}' for model, losses in written.items())
    RESULT.write_text(f'{{"torch": "{torch.__version__}", "losses": {{\n{losses}\n}}}}\n')
    return 0 if is_close else 1


if __name__ == "__main__":
    sys.exit(main())
