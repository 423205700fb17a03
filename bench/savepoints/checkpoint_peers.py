"""Saves and loads one state with Holdfast and with what Python users have, in turns on the same disk.

Each round runs bench_checkpoint once (Holdfast and plain file operations) and then every peer once. A save counts until
fsync has returned, a load until all arrays are in memory; a cold load finds nothing of the file in the page cache.
Medians are over the rounds.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import hdf5plugin
import numpy as np
import safetensors.numpy

LAYER = (4096, 1024)  # as bench_checkpoint's
CHUNK = (256, 1024)  # 1 MiB, as Holdfast's


def make_state(mib):
    """Normally distributed numbers, as many weights are."""
    generator = np.random.default_rng(1)
    layers = max(1, (mib << 20) // (4 * LAYER[0] * LAYER[1]))
    return {
        f"model/layer{i}/kernel": generator.normal(0.0, 0.02, LAYER).astype(np.float32) for i in range(layers)
    }


class Peer:
    def equal(self, loaded, array):
        return np.array_equal(loaded, array)


class Hdf5(Peer):
    suffix = ".h5"

    def __init__(self, **filters):
        self.filters = filters

    def save(self, path, state):
        with h5py.File(path, "w") as file:
            for name, array in state.items():
                file.create_dataset(name, data=array, chunks=CHUNK, **self.filters)

    def load(self, path, names):
        with h5py.File(path, "r") as file:
            return {name: file[name][()] for name in names}


class Safetensors(Peer):
    suffix = ".safetensors"

    def save(self, path, state):
        safetensors.numpy.save_file(state, path)

    def load(self, path, names):
        return safetensors.numpy.load_file(path)


class Savez(Peer):
    suffix = ".npz"

    def save(self, path, state):
        np.savez(path, **state)

    def load(self, path, names):
        with np.load(path) as file:
            return {name: file[name] for name in names}


class Torch(Peer):
    suffix = ".pt"

    def __init__(self, torch):
        self.torch = torch

    def save(self, path, state):
        self.torch.save({name: self.tensor(array) for name, array in state.items()}, path)

    def load(self, path, names):
        return self.torch.load(path)

    def tensor(self, array):
        # from_numpy is not used, since the versions of torch and numpy may not fit together here.
        return self.torch.frombuffer(array, dtype=self.torch.float32).reshape(array.shape)

    def equal(self, loaded, array):
        return self.torch.equal(loaded, self.tensor(array))


def import_torch(packages):
    sys.path.append(packages)
    try:
        return importlib.import_module("torch")
    except ImportError:
        print("torch.save is left out: torch is not installed (Debian: python3-torch)", file=sys.stderr)
        return None
    finally:
        sys.path.remove(packages)


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def drop_from_cache(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def seconds(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


class Times:
    def __init__(self):
        self.seconds = {}
        self.bytes = {}
        self.ratios = {}

    def add(self, name, duration, size, ratio=None):
        self.seconds.setdefault(name, []).append(duration)
        self.bytes[name] = size
        if ratio is not None:
            self.ratios[name] = ratio

    def print(self):
        print(f"{'':<36} {'seconds':>10} {'GB/s':>8} {'ratio':>8}")
        for name, all_seconds in self.seconds.items():
            duration = statistics.median(all_seconds)
            rate = f"{self.bytes[name] / duration / 1e9:.3f}" if self.bytes[name] else ""
            ratio = f"{self.ratios[name]:.3f}" if name in self.ratios else ""
            print(f"{name:<36} {duration:>10.4f} {rate:>8} {ratio:>8}")


def run_holdfast(arguments, folder, times):
    command = [arguments.program, "--mib", str(arguments.mib), "--rounds", "1", "--threads", str(arguments.threads)]
    output = subprocess.run([*command, "--folder", folder, "--json"], check=True, stdout=subprocess.PIPE).stdout
    for name, result in json.loads(output).items():
        label = name if name.startswith("raw") else "holdfast " + name
        times.add(label, result["seconds"][0], result["bytes"], result.get("ratio"))


def run_peer(label, peer, state, folder, times):
    path = os.path.join(folder, "peer" + peer.suffix)
    size = sum(array.nbytes for array in state.values())

    def save():
        peer.save(path, state)
        sync(path)

    duration, _ = seconds(save)
    times.add(label + " save", duration, size, size / os.path.getsize(path))
    for warmth in ("cold", "warm"):
        if warmth == "cold":
            drop_from_cache(path)
        duration, loaded = seconds(lambda: peer.load(path, state.keys()))
        if not all(peer.equal(loaded[name], array) for name, array in state.items()):
            raise RuntimeError(f"{label} loaded other numbers")
        times.add(f"{label} load {warmth}", duration, size)
        del loaded
    os.remove(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="bench_checkpoint")
    parser.add_argument("--mib", type=int, default=1024, help="size of the state")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="of Holdfast; 0: all cores")
    parser.add_argument("--folder", help="where files are written; a temporary folder otherwise")
    parser.add_argument("--packages", default="", help="further folder of Python packages, for torch")
    arguments = parser.parse_args()

    peers = {
        "h5py gzip": Hdf5(compression="gzip", shuffle=True),
        "HDF5 pipeline, zstd 1": Hdf5(**hdf5plugin.Zstd(clevel=1), shuffle=True),
        "safetensors": Safetensors(),
        "numpy.savez": Savez(),
    }
    torch = import_torch(arguments.packages)
    if torch:
        peers[f"torch {torch.__version__}"] = Torch(torch)

    state = make_state(arguments.mib)
    times = Times()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for _ in range(arguments.rounds):
            run_holdfast(arguments, folder, times)
            for label, peer in peers.items():
                run_peer(label, peer, state, folder, times)
    print(f"{arguments.mib} MiB of normal numbers, {arguments.rounds} rounds, medians\n")
    times.print()


main()
