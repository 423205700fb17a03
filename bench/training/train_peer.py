"""The sequence models of measured_models.h as users of PyTorch write them, for bench/train.

    train_peer.py --model gpt|lstm [--steps 20] [--batch 16] [--threads 1] [--compile]
"""

import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

FIRST_STEPS = 3  # that are not measured
BATCHES = 8
WORDS, WIDTH, HEADS = 512, 256, 4
LENGTHS = {"gpt": 128, "lstm": 64}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        samples, length, _ = x.shape
        q, k, v = self.attention(self.first_norm(x)).view(samples, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(seen.transpose(1, 2).reshape(samples, length, WIDTH))
        return x + self.narrow(functional.gelu(self.wide(self.second_norm(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTHS["gpt"], WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(4)])
        self.last_norm = nn.LayerNorm(WIDTH)
        nn.init.normal_(self.words.weight, 0, 0.02)
        nn.init.normal_(self.positions.weight, 0, 0.02)

    def forward(self, ids):
        x = self.blocks(self.words(ids) + self.positions.weight)
        return self.last_norm(x) @ self.words.weight.t()


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.LSTM(WIDTH, WIDTH, num_layers=2, batch_first=True)
        self.scores = nn.Linear(WIDTH, WORDS)

    def forward(self, ids):
        return self.scores(self.layers(self.words(ids))[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", choices=("gpt", "lstm"), default="gpt")
    parser.add_argument("--steps", type=int, default=20, help="in all")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--budget_ms", help="ignored; bench/train gives it to peers")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    net = Gpt() if arguments.model == "gpt" else Lstm()
    called = torch.compile(net) if arguments.compile else net
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=0.1)
    ids = torch.randint(0, WORDS, (BATCHES, arguments.batch, LENGTHS[arguments.model] + 1))
    times = []
    for step in range(arguments.steps):
        begin = time.perf_counter()
        batch = ids[step % BATCHES]
        optimizer.zero_grad()
        scores = called(batch[:, :-1].contiguous())
        functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten()).backward()
        optimizer.step()
        if step >= FIRST_STEPS:
            times.append(1e3 * (time.perf_counter() - begin))
    if times:
        print(f"best {min(times):.3f} ms median {statistics.median(times):.3f} ms of {len(times)} steps")


if __name__ == "__main__":
    main()
