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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/training"))
from torch_peer import ResNet, Transformer  # noqa: E402  the modules of examples/libtorch, as users of PyTorch write them

TYPES = {"F32": torch.float32, "I64": torch.int64}


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
