"""The training of recovery_program as PyTorch users write it: torchrun, gloo, DistributedDataParallel, torch.save.

Each process appends "generation rank size step microseconds" to FOLDER/steps-<pid>.txt, as recovery_program does; a
generation is one of torchrun's restarts.
"""

import argparse
import os
import time

import torch
import torch.distributed
from torch import nn

SAMPLES, INPUTS, CLASSES = 1024, 784, 10
BATCH = 16  # of all ranks


def make_model():
    widths = [INPUTS, 2048, 2048, 1408]
    layers = []
    for inputs, units in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, units), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], CLASSES))


def save(path, model, optimizer, step):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path + ".new")
    os.replace(path + ".new", path)


def load(path, model, optimizer):
    if not os.path.exists(path):
        return 0
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def train(folder, save_every):
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(1)
    features, targets = torch.randn(SAMPLES, INPUTS), torch.arange(SAMPLES) % CLASSES
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    checkpoint = os.path.join(folder, "checkpoint.pt")
    step = load(checkpoint, model, optimizer)
    replica = nn.parallel.DistributedDataParallel(model)
    generation = os.environ["TORCHELASTIC_RESTART_COUNT"]
    samples = BATCH // size
    with open(os.path.join(folder, f"steps-{os.getpid()}.txt"), "a", buffering=1) as log:
        while True:
            begin = (step * BATCH + rank * samples) % SAMPLES
            optimizer.zero_grad()
            outputs = replica(features[begin:begin + samples])
            nn.functional.cross_entropy(outputs, targets[begin:begin + samples]).backward()
            optimizer.step()
            step += 1
            log.write(f"{generation} {rank} {size} {step} {time.time_ns() // 1000}\n")
            if rank == 0 and step % save_every == 0:
                save(checkpoint, model, optimizer, step)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--save-every", type=int, default=10, help="steps between checkpoints")
    arguments = parser.parse_args()
    # A store for each attempt. With torchrun's own store, PyTorch 2.15 tried to reach addresses of processes that were
    # gone, and some restarts failed or hung (pytorch issue 167288 looks similar).
    store = os.path.join(os.path.abspath(arguments.folder), "rendezvous-" + os.environ["TORCHELASTIC_RESTART_COUNT"])
    torch.distributed.init_process_group("gloo", init_method="file://" + store, rank=int(os.environ["RANK"]),
                                         world_size=int(os.environ["WORLD_SIZE"]))
    train(arguments.folder, arguments.save_every)


main()
