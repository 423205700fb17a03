"""The training of gpu_training as PyTorch users write it: eager, compiled, and as CUDA graphs. For bench/gpu/runs.py.

    peer.py --model mlp|lenet5 --turns PREFIX [--device cuda] [--precision tf32] [--batch 2048] [--divisor 1]

Each line "NUMBER WARM STEPS WAY" in the FIFO PREFIX.ask has that way make so many steps; one line of JSON in
PREFIX.told answers: {"turn", "steps", "seconds", "loss"} of the steps that count, or {"turn", "error"}; the whole of an
error goes to standard error. A way is MAKE/DATA: eager, compiled, graph or compiled-graph, with data on the "device" or
in the "host"'s pinned memory, or "adam", its update alone. All have fused Adam. "start" makes nothing: it is answered
once the samples are there. It ends when nobody asks any more.
"""

import argparse
import contextlib
import json
import time
import traceback

import torch
from torch import nn
from torch.nn import functional

BATCHES = 8  # different ones
MAKES = ("eager", "compiled", "graph", "compiled-graph", "adam")


def mlp(divisor):
    widths = [width // divisor for width in (8000, 4000, 2000, 500, 300)]
    layers = []
    for inputs, outputs, activation in zip(widths, widths[1:], (nn.Tanh, nn.ReLU, nn.ReLU, nn.ReLU)):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 1))


def lenet5():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.Tanh(),
        nn.Linear(120, 84),
        nn.Tanh(),
        nn.Linear(84, 10),
    )


class Case:
    """Model, loss and samples of one benchmark."""

    def __init__(self, arguments):
        self.device = torch.device(arguments.device)
        self.is_cuda = arguments.device == "cuda"
        self.is_mlp = arguments.model == "mlp"
        self.is_bf16 = arguments.precision == "bf16"
        self.batch = arguments.batch
        self.divisor = arguments.divisor
        generator = torch.Generator().manual_seed(1)
        self.on_host = [self.draw(generator) for _ in range(BATCHES)]
        if self.is_cuda:
            self.on_host = [tuple(tensor.pin_memory() for tensor in one) for one in self.on_host]
        self.on_device = [tuple(tensor.to(self.device) for tensor in one) for one in self.on_host]

    def draw(self, generator):
        if self.is_mlp:
            features = torch.rand(self.batch, 8000 // self.divisor, generator=generator)
            return features, torch.floor(features[:, :1] * 2)
        features = torch.rand(self.batch, 1, 28, 28, generator=generator)
        return features, torch.floor(features[:, 0, 0, 0] * 10).long()

    def model(self):
        torch.manual_seed(1)
        return (mlp(self.divisor) if self.is_mlp else lenet5()).to(self.device)

    def optimizer(self, model):
        # A graph reads the learning rate, so it must be on the device.
        options = {"capturable": True} if self.is_cuda else {}
        return torch.optim.Adam(model.parameters(), lr=1e-4 if self.is_mlp else 1e-3, fused=True, **options)

    def loss(self, outputs, targets):
        if self.is_mlp:
            return functional.binary_cross_entropy_with_logits(outputs.float(), targets)
        return functional.cross_entropy(outputs.float(), targets)

    def precision(self):
        if self.is_bf16:
            return torch.autocast(self.device.type, dtype=torch.bfloat16, cache_enabled=False)
        return contextlib.nullcontext()

    def wait(self):
        if self.is_cuda:
            torch.cuda.synchronize()


class Training:
    """A model with its optimizer, whose steps are made in one of the ways."""

    def __init__(self, case, make):
        self.case = case
        model = case.model()
        self.optimizer = case.optimizer(model)

        def forward(features, targets):
            return case.loss(model(features), targets)

        self.forward = torch.compile(forward) if "compiled" in make else forward
        # Two buffers for samples: one is filled while the other is read.
        self.inputs = [tuple(tensor.clone() for tensor in one) for one in case.on_device[:2]]
        self.graphs = [self.capture(one) for one in self.inputs] if "graph" in make else []
        self.copies = torch.cuda.Stream() if case.is_cuda else None
        self.is_filled = [self.event() for _ in self.inputs]
        self.is_read = [self.event() for _ in self.inputs]
        self.loss = None

    def event(self):
        return torch.cuda.Event() if self.case.is_cuda else None

    def compute(self, features, targets):
        self.optimizer.zero_grad(set_to_none=True)
        with self.case.precision():
            loss = self.forward(features, targets)
        loss.backward()
        self.optimizer.step()
        return loss

    def capture(self, inputs):
        """A graph of a whole step on these inputs, and the loss tensor that it writes."""
        if not self.case.is_cuda:
            raise RuntimeError("CUDA graphs need a CUDA device")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                self.compute(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self.compute(*inputs)
        # Detached from its inputs, which belong to the graph.
        return graph, loss.detach()

    def compute_at(self, place):
        if not self.graphs:
            return self.compute(*self.inputs[place])
        graph, loss = self.graphs[place]
        graph.replay()
        return loss

    def fill(self, place, samples):
        for to, source in zip(self.inputs[place], samples):
            to.copy_(source, non_blocking=True)

    def run_from_device(self, steps):
        for step in range(steps):
            samples = self.case.on_device[step % BATCHES]
            if self.graphs:
                self.fill(step % 2, samples)
                self.loss = self.compute_at(step % 2)
            else:
                self.loss = self.compute(*samples)

    def send(self, step):
        """Copies the samples of a step while another step is computed."""
        place, samples = step % 2, self.case.on_host[step % BATCHES]
        if not self.case.is_cuda:
            return self.fill(place, samples)
        with torch.cuda.stream(self.copies):
            self.copies.wait_event(self.is_read[place])
            self.fill(place, samples)
            self.is_filled[place].record()

    def run_from_host(self, steps):
        self.send(0)
        for step in range(steps):
            if step + 1 < steps:
                self.send(step + 1)
            if self.case.is_cuda:
                torch.cuda.current_stream().wait_event(self.is_filled[step % 2])
            self.loss = self.compute_at(step % 2)
            if self.case.is_cuda:
                self.is_read[step % 2].record()

    def run(self, steps, data):
        self.run_from_device(steps) if data == "device" else self.run_from_host(steps)

    def final_loss(self):
        return float(self.loss.detach())


class Update:
    """Only fused Adam, on the model's parameters, with constant gradients."""

    def __init__(self, case):
        model = case.model()
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, 1e-3)
        self.optimizer = case.optimizer(model)

    def run(self, steps, data):
        for _ in range(steps):
            self.optimizer.step()

    def final_loss(self):
        return 0.0


def answer(case, ways, warm, steps, way):
    make, _, data = way.partition("/")
    if make not in MAKES or data not in (("",) if make == "adam" else ("device", "host")):
        raise ValueError(f"there is no way {way}")
    if make not in ways:
        ways[make] = Update(case) if make == "adam" else Training(case, make)
    contender = ways[make]
    if int(warm) > 0:
        contender.run(int(warm), data)
    case.wait()
    begin = time.perf_counter()
    contender.run(int(steps), data)
    case.wait()
    seconds = time.perf_counter() - begin
    return {"steps": int(steps), "seconds": seconds, "loss": contender.final_loss()}


def answer_or_error(case, ways, failures, warm, steps, way):
    """Skips a way that this PyTorch does not have, and keeps the others. A way is tried only once: with other data it
    would take as long and fail again."""
    if way == "start":
        return {"steps": 0, "seconds": 0.0, "loss": 0.0}
    make = way.partition("/")[0]
    if make not in failures:
        try:
            return answer(case, ways, warm, steps, way)
        except Exception as failure:
            traceback.print_exc()
            failures[make] = sentence_of(failure)
            # Its memory on the device may be needed by others.
            ways.pop(make, None)
    return {"error": failures[make]}


def sentence_of(failure):
    """The first and the last line of a message: what was done, and what was wrong, as compilers print it."""
    lines = [line.strip() for line in f"{type(failure).__name__}: {failure}".splitlines() if line.strip()]
    return lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1]}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=("mlp", "lenet5"), required=True)
    parser.add_argument("--turns", required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--precision", choices=("f32", "tf32", "bf16"), default="f32")
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--divisor", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.set_float32_matmul_precision("high" if arguments.precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = arguments.precision == "tf32"
    torch.backends.cudnn.benchmark = True
    case = Case(arguments)
    ways, failures = {}, {}
    with open(arguments.turns + ".ask") as ask, open(arguments.turns + ".told", "w") as told:
        for line in ask:
            number, *turn = line.split()
            told_of = answer_or_error(case, ways, failures, *turn)
            print(json.dumps({"turn": int(number), **told_of}), file=told, flush=True)


if __name__ == "__main__":
    main()
