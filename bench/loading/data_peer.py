#!/usr/bin/env python3
"""A peer of data_program: the same work with a DataLoader of PyTorch or a PyDataset of Keras. bench/data runs it.

    data_peer.py --peer torch|keras --work jpeg|augment|map [--data FOLDER] [--workers W] [--processes] [--epochs N]
    data_peer.py --make FOLDER       512 JPEG files of 500 x 375 pixels, in two folders
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np


def make_pictures(folder):
    from PIL import Image

    draws = np.random.default_rng(1)
    rows, columns = np.mgrid[0:375, 0:500]
    for i in range(512):
        base = np.stack([rows * 0.5 + i % 7 * 9, columns * 0.4, (rows + columns) * 0.25 + i % 5 * 11], axis=-1)
        pixels = np.clip(base + draws.normal(0, 12, base.shape), 0, 255).astype(np.uint8)
        path = Path(folder) / ("a" if i % 2 == 0 else "b") / f"{i:03}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, quality=90)


class Pictures:
    batch = 32

    def __init__(self, folder):
        self.paths = sorted(Path(folder).rglob("*.jpg"))

    def __len__(self):
        return len(self.paths)

    def sample(self, index):
        from PIL import Image

        with Image.open(self.paths[index]) as picture:
            pixels = np.asarray(picture.convert("RGB"))
        top, left = (pixels.shape[0] - 224) // 2, (pixels.shape[1] - 224) // 2
        return pixels[top : top + 224, left : left + 224].astype(np.float32) * np.float32(1 / 255)


def patterned(samples, shape):
    count = int(np.prod(shape))
    i, j = np.arange(samples)[:, None], np.arange(count)[None, :]
    return (((7 * i + 13 * j) % 256).astype(np.float32) / np.float32(255)).reshape(samples, *shape)


class Augmented:
    batch = 64

    def __init__(self, _):
        self.pictures = patterned(8192, (32, 32, 3))
        self.draws = np.random.default_rng(1)

    def __len__(self):
        return len(self.pictures)

    def sample(self, index):
        padded = np.zeros((40, 40, 3), np.float32)
        padded[4:36, 4:36] = self.pictures[index]
        top, left = self.draws.integers(0, 9, 2)
        cut = padded[top : top + 32, left : left + 32]
        return np.ascontiguousarray(cut[:, ::-1]) if self.draws.random() < 0.5 else cut


class Mapped:
    batch = 64

    def __init__(self, _):
        self.rows = patterned(60000, (784,))

    def __len__(self):
        return len(self.rows)

    def sample(self, index):
        return self.rows[index] * np.float32(2) - np.float32(1)


KINDS = {"jpeg": Pictures, "augment": Augmented, "map": Mapped}


def torch_batches(data, workers):
    import torch

    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return len(data)

        def __getitem__(self, index):
            return torch.from_numpy(np.ascontiguousarray(data.sample(index))), 0

    loader = torch.utils.data.DataLoader(Samples(), batch_size=data.batch, num_workers=workers,
                                         persistent_workers=workers > 0)

    def epoch():
        for features, _ in loader:
            yield features.numpy()

    return epoch


def keras_batches(data, workers, processes):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return -(-len(data) // data.batch)

        def __getitem__(self, index):
            samples = range(index * data.batch, min((index + 1) * data.batch, len(data)))
            return np.stack([data.sample(i) for i in samples]), np.zeros(len(samples), np.float32)

    batches = Batches(workers=max(workers, 1), use_multiprocessing=processes and workers > 0)

    def epoch():
        adapter = PyDatasetAdapter(batches, shuffle=False)
        adapter.on_epoch_begin()
        for index, (features, _) in enumerate(adapter.get_numpy_iterator()):
            yield features
            if index + 1 == len(batches):
                break
        adapter.on_epoch_end()

    return epoch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--make", metavar="FOLDER")
    parser.add_argument("--peer", choices=("torch", "keras"))
    parser.add_argument("--work", choices=sorted(KINDS))
    parser.add_argument("--data")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.make:
        make_pictures(arguments.make)
        return
    data = KINDS[arguments.work](arguments.data)
    if arguments.peer == "torch":
        epoch = torch_batches(data, arguments.workers)
    else:
        epoch = keras_batches(data, arguments.workers, arguments.processes)
    total = sum(float(batch.sum(dtype=np.float64)) for batch in epoch())
    samples = 0
    begin = time.perf_counter()
    for _ in range(arguments.epochs):
        for batch in epoch():
            samples += len(batch)
    print(json.dumps({"samples": samples, "seconds": time.perf_counter() - begin, "sum": total}))


if __name__ == "__main__":
    main()
