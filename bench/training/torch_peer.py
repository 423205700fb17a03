"""The trainings of torch_program as PyTorch users write them: DistributedDataParallel over gloo. bench/torch starts it.

    torch_peer.py [--model resnet|transformer|mlp] [--steps 50] [--batch 32] [--threads 1] [--replicas 2] --folder DIR

`--batch` counts the samples of all replicas. It prints the line that torch_program prints.
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import time

import torch
import torch.distributed
from torch import nn
from torch.nn import functional

FIRST_STEPS = 5  # that are not measured
BATCHES = 8
TOKENS, LENGTH, WIDTH = 32, 24, 32


def convolution(inputs, outputs, size, stride):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.first_norm = convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.second, self.second_norm = convolution(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs)
        self.shortcut = convolution(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        y = self.second_norm(self.second(torch.relu(self.first_norm(self.first(x)))))
        return torch.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.stem_norm = convolution(1, 8, 3, 2), nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = torch.relu(self.stem_norm(self.stem(x.reshape(-1, 1, 28, 28))))
        return self.head(self.blocks(x).mean((2, 3)))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.register_buffer("mask", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, dim_feedforward=64, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens):
        x = (self.embedding(tokens) + self.positions).transpose(0, 1)
        return self.head(self.encoder(x, self.mask).transpose(0, 1))


def mlp():
    return nn.Sequential(nn.Linear(8000, 4000), nn.Tanh(), nn.Linear(4000, 2000), nn.ReLU(), nn.Linear(2000, 500),
                         nn.ReLU(), nn.Linear(500, 300), nn.ReLU(), nn.Linear(300, 1))


def case(name, samples):
    """The module, its optimizer, its samples, and a function of (module, samples, targets) that returns the loss."""
    if name == "resnet":
        net = ResNet()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        data = torch.rand(samples, 28, 28, 1), torch.randint(0, 10, (samples,))
        return net, optimizer, *data, lambda net, x, y: functional.cross_entropy(net(x), y)
    if name == "transformer":
        net = Transformer()
        tokens = torch.randint(0, TOKENS, (samples, LENGTH + 1))
        return (net, torch.optim.AdamW(net.parameters(), lr=3e-3), tokens[:, :-1], tokens[:, 1:],
                lambda net, x, y: functional.cross_entropy(net(x).flatten(0, 1), y.flatten()))
    net = mlp()
    data = torch.rand(samples, 8000), (torch.rand(samples, 1) < 0.5).float()
    return (net, torch.optim.Adam(net.parameters(), lr=1e-4), *data,
            lambda net, x, y: functional.binary_cross_entropy_with_logits(net(x), y))


def train(rank, arguments):
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo", init_method="file://" + os.path.join(arguments.folder, "store"),
                                         rank=rank, world_size=arguments.replicas)
    samples = arguments.batch // arguments.replicas
    net, optimizer, x, y, loss_of = case(arguments.model, BATCHES * samples)
    replica = nn.parallel.DistributedDataParallel(net)
    times = []
    for step in range(FIRST_STEPS + arguments.steps):
        begin = time.perf_counter()
        first = step % BATCHES * samples
        optimizer.zero_grad()
        loss_of(replica, x[first:first + samples], y[first:first + samples]).backward()
        optimizer.step()
        if step == FIRST_STEPS - 1:
            processor = time.process_time()
            pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        if step >= FIRST_STEPS:
            times.append(1e3 * (time.perf_counter() - begin))
    processor = 1e3 * (time.process_time() - processor) / len(times)
    pages = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - pages) / len(times)
    if rank == 0:
        print(f"median {statistics.median(times):.4f} ms least {min(times):.4f} ms processor {processor:.4f} ms "
              f"pages {pages:.1f} of {len(times)} steps", flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", choices=("resnet", "transformer", "mlp"), default="resnet")
    parser.add_argument("--steps", type=int, default=50, help="that are measured")
    parser.add_argument("--batch", type=int, default=32, help="samples a step, of all replicas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--folder", required=True, help="new, for the file through which the processes meet")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    start = multiprocessing.get_context("spawn").Process
    processes = [start(target=train, args=(rank, arguments)) for rank in range(arguments.replicas)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    raise SystemExit(max(abs(process.exitcode) for process in processes))


if __name__ == "__main__":
    main()
