#!/usr/bin/env python3
"""residual_losses.py [--build FOLDER]: trains the residual network of the examples in PyTorch, 50 steps from the weights
and on the batches of residual_run_program, without and with momentum. It writes the losses of PyTorch in f64 to
tests/integration/models/residual_losses.json, which a test compares with Holdfast's, and prints how far those of
Holdfast, and of PyTorch in f32, are from them.

In f32 both are equal to f64 up to rounding for some ten steps. Then a number near 0 gets the other sign, a ReLU lets
another gradient through, and the losses differ by up to 0.5 % at step 50.

The network is written down anew here, from its description: convolutions with `same` padding as TensorFlow has it,
each followed by a batch normalization (momentum 0.9 for the moving statistics, epsilon 1e-5, biased variance).

Packages: torch (on CPUs) and numpy. Exit code: 0; 1 if a loss of Holdfast is further off than the test allows.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional

STEPS, BATCH = 50, 32
ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULT = ROOT / "tests/integration/models/residual_losses.json"


def arrays_in(path):
    """The arrays of a safetensors file, all of them f32: a length, a header of JSON, and bytes."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    arrays = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            array = np.frombuffer(data[begin + first:begin + end], np.float32).reshape(entry["shape"])
            arrays[name] = torch.from_numpy(array.copy())
    return arrays


class ConvolutionNormalized(nn.Module):
    """Convolution number `number` of the savepoint, and the normalization after it."""

    def __init__(self, weights, number, stride):
        super().__init__()
        suffix = f"_{number}" if number else ""
        # Holdfast: [height, width, in, out].
        kernel = weights[f"model/conv2d{suffix}/kernel"].permute(3, 2, 0, 1).contiguous()
        self.kernel, self.stride = nn.Parameter(kernel), stride
        self.norm = nn.BatchNorm2d(kernel.shape[0], eps=1e-5, momentum=0.1)
        for ours, theirs in (("gamma", self.norm.weight), ("beta", self.norm.bias)):
            theirs.data.copy_(weights[f"model/batch_normalization{suffix}/{ours}"])

    def forward(self, x):
        # As much padding as gives ceil(size / stride) places; the odd one is at the end.
        margins = []
        for size, kernel in reversed(list(zip(x.shape[2:], self.kernel.shape[2:]))):
            total = max((-(-size // self.stride) - 1) * self.stride + kernel - size, 0)
            margins += [total // 2, total - total // 2]
        return self.norm(functional.conv2d(functional.pad(x, margins), self.kernel, stride=self.stride))


class Block(nn.Module):
    def __init__(self, weights, first, stride, shortcut=None):
        super().__init__()
        self.first = ConvolutionNormalized(weights, first, stride)
        self.second = ConvolutionNormalized(weights, first + 1, 1)
        self.shortcut = nn.Identity() if shortcut is None else ConvolutionNormalized(weights, shortcut, stride)

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))


class Network(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.stem = ConvolutionNormalized(weights, 0, 2)
        self.blocks = nn.Sequential(Block(weights, 1, 1), Block(weights, 3, 2, 5), Block(weights, 6, 2, 8))
        kernel = weights["model/dense/kernel"]
        self.dense = nn.Linear(*kernel.shape)
        self.dense.weight.data.copy_(kernel.T)
        self.dense.bias.data.copy_(weights["model/dense/bias"])

    def forward(self, x):
        return self.dense(self.blocks(torch.relu(self.stem(x))).mean(dim=(2, 3)))


def losses_of(weights, images, labels, learning_rate, momentum, dtype):
    network = Network(weights).to(dtype).train()
    optimizer = torch.optim.SGD(network.parameters(), lr=learning_rate, momentum=momentum)
    losses = []
    for x, y in zip(images.to(dtype), labels):
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def largest_differences(losses, expected):
    """Relative to the expected ones: of step 1, of steps 2 to 10, and of the rest."""
    differences = np.abs(np.array(losses) / np.array(expected) - 1)
    return [float(part.max()) for part in (differences[:1], differences[1:10], differences[10:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default=ROOT / "build/release", type=pathlib.Path, help="folder of the build")
    programs = parser.parse_args().build / "bin"
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([programs / "residual_run_program", folder], check=True)
        subprocess.run([programs / "holdfast", "convert", folder / "initial.h5", folder / "initial.safetensors"],
                       check=True, stdout=subprocess.DEVNULL)
        weights = arrays_in(folder / "initial.safetensors")
        images = np.fromfile(folder / "images.bin", np.float32).reshape(STEPS, BATCH, 28, 28, 1)
        labels = np.fromfile(folder / "labels.bin", np.float32).reshape(STEPS, BATCH)
        runs = json.loads((folder / "runs.json").read_text())
    images = torch.from_numpy(images.transpose(0, 1, 4, 2, 3).copy())
    labels = torch.from_numpy(labels.astype(np.int64))

    written, is_close = [], True
    for run in runs:
        options = {"learning_rate": run["learning_rate"], "momentum": run["momentum"]}
        expected = losses_of(weights, images, labels, **options, dtype=torch.float64)
        written.append(options | {"losses": expected})
        for name, losses in (("Holdfast", run["losses"]),
                             ("PyTorch in f32", losses_of(weights, images, labels, **options, dtype=torch.float32))):
            found = largest_differences(losses, expected)
            is_close &= name != "Holdfast" or all(d <= limit for d, limit in zip(found, (1e-4, 1e-3, 1e-2)))
            print(f"{options}: {name} at step 1 {found[0]:.1e}, to step 10 {found[1]:.1e}, to step 50 {found[2]:.1e}")
    runs = ",\n".join(json.dumps(run) for run in written)
    RESULT.write_text(f'{{"torch": "{torch.__version__}", "runs": [\n{runs}\n]}}\n')
    return 0 if is_close else 1


if __name__ == "__main__":
    sys.exit(main())
