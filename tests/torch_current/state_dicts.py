"""A savepoint of each module of examples/libtorch becomes a state dict that PyTorch loads, and comes back.

    state_dicts.py HOLDFAST MODEL RUN_DIRECTORY

load_state_dict() is called with strict=True, so a name or shape that is missing, left over or another one ends the test.
The way back begins with numbers that only PyTorch has written.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn

TYPES = {"F32": torch.float32, "I64": torch.int64}
TOKENS, LENGTH, WIDTH = 32, 24, 32


def convolution(inputs, outputs, size, stride):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.first_norm = convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.second, self.second_norm = convolution(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs)
        if stride != 1 or inputs != outputs:
            self.shortcut = convolution(inputs, outputs, 1, stride)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.stem_norm = convolution(1, 8, 3, 2), nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2))
        self.head = nn.Linear(32, 10)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.register_buffer("mask", torch.zeros(LENGTH, LENGTH))
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 4, 64, 0.1), 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, TOKENS)


# The format is eight bytes for the length of a JSON text, the text, and the arrays.
def read(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(bytearray(data[slice(*of["data_offsets"])]), dtype=TYPES[of["dtype"]]).reshape(of["shape"])
            for name, of in header.items()}


def write(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().tobytes()
        kind = next(kind for kind, of in TYPES.items() if of == tensor.dtype)
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def main():
    holdfast, model, run = sys.argv[1:]
    savepoint = sorted(pathlib.Path(run).glob("savepoint-*.h5"))[-1]
    net = {"resnet": ResNet, "transformer": Transformer}[model]()
    with tempfile.TemporaryDirectory() as folder:
        convert = lambda *words: subprocess.run([holdfast, "convert", *map(str, words)], check=True, stdout=subprocess.DEVNULL)
        trained, changed, back, again = (pathlib.Path(folder, name) for name in
                                         ("trained.safetensors", "changed.safetensors", "back.h5", "again.safetensors"))
        convert(savepoint, trained, "--to", "pytorch")
        state = read(trained)
        net.load_state_dict(state, strict=True)
        for name, tensor in net.state_dict().items():
            assert numpy.array_equal(tensor.numpy(), state[name].numpy(), equal_nan=True), name

        new = {name: tensor * 2 + 1 if tensor.dtype == torch.float32 and name != "mask" else tensor
               for name, tensor in net.state_dict().items()}
        write(changed, new)
        convert(changed, back, "--like", savepoint)
        convert(back, again, "--to", "pytorch")
        found = read(again)
        assert found.keys() == new.keys()
        for name, tensor in new.items():
            # The count of batches is that of the file's step.
            if name.endswith("num_batches_tracked"):
                continue
            assert numpy.array_equal(found[name].numpy(), tensor.numpy(), equal_nan=True), name
    print(f"{model}: {len(new)} arrays of the state dict loaded strictly, and came back")


if __name__ == "__main__":
    main()
