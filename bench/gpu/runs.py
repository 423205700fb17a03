"""Holdfast beside PyTorch on one GPU, in turns within one run, and each figure beside what is aimed at.

    runs.py limits|passes|snapshot|mlp-tf32|mlp-bf16|lenet5 --bin DIR --out DIR [--python PYTHON] [--rounds 5] [--trial]

limits first: the others state their shares of what it measured, DIR/limits.json. Each writes DIR/CASE.json and prints
lines that begin with "figure: ". --trial takes little models, to see that all of it works. No GPU is needed for that
with --peer-device cpu and --device cpu, or with another computer than a GPU behind HOLDFAST_CUDA_LIBRARY.

Exit code: 0 measured, whatever came out; 1 something could not be measured, which is said; 77 there is no GPU.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import figures
from contender import Contender, Failed

HERE = Path(__file__).resolve().parent
WAYS = ("eager", "compiled", "graph", "compiled-graph")
NO_GPU = 77
TRIAL_DIVISOR = 100


def run_program(arguments, name, *options):
    """What a program says on standard output, as JSON. Ends this one where there is no GPU."""
    done = subprocess.run(
        [str(arguments.bin / name), *options], stdout=subprocess.PIPE, timeout=arguments.patience, check=False
    )
    if done.returncode == NO_GPU:
        sys.exit(NO_GPU)
    if done.returncode != 0:
        raise Failed(f"{name} ended with code {done.returncode}")
    return json.loads(done.stdout)


def read_limits(arguments):
    """What `limits` measured; nothing where it was not run."""
    path = arguments.out / "limits.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def keep(arguments, name, measured):
    (arguments.out / f"{name}.json").write_text(json.dumps(measured, indent=1) + "\n")


def tell(lines):
    for line in lines:
        print(f"figure: {line}", flush=True)


def measure_limits(arguments):
    measured = run_program(arguments, "gpu_limits", *(["--small"] if arguments.trial else []))
    keep(arguments, "limits", measured)
    tell(figures.of_limits(measured))
    return True


def floats_of_passes(arguments):
    parameters = figures.mlp_parameters(TRIAL_DIVISOR if arguments.trial else 1)
    return ["--floats", str((parameters + 15) // 16 * 16)]


def measure_passes(arguments):
    """Adam and copies of the state alone, beside the runtime's own copies, in turns."""
    options = floats_of_passes(arguments)
    ours, raw, peer = [], [], []
    with peer_of(arguments, "mlp", "f32") as torch_side:
        for _ in range(arguments.rounds):
            ours.append(run_program(arguments, "gpu_passes", *options))
            if arguments.peer_device == "cuda":
                raw.append(run_program(arguments, "gpu_limits", "--copies-only", *options))
            told = torch_side.turn(5, 50, "adam") if torch_side else None
            if told and "error" not in told:
                peer.append(told["seconds"] / told["steps"])
    measured = {"holdfast": ours, "runtime": raw, "pytorch_adam_seconds": peer}
    keep(arguments, "passes", measured)
    tell(figures.of_passes(measured))
    return bool(raw) and bool(peer)


def measure_snapshot(arguments):
    """What training waits for when the state is copied into the watchdog's memory."""
    # So rarely that the one before has arrived: it travels, and is digested, while training goes on.
    every = 10 if arguments.trial else 200
    steps = [figures.SNAPSHOT_WARM, 3 * every]
    model = {"model": "mlp", "precision": "f32", "data": "host", "batch": batch_of(arguments, "mlp")}
    turns, copies = [], []
    with holdfast(arguments, "snapshot", **model, snapshot_every=every) as ours:
        # The first one finds its memory, which is done once.
        ours.turn(*steps)
        for _ in range(arguments.rounds):
            turns.append(ours.turn(*steps))
            copies.append(run_program(arguments, "gpu_passes", *floats_of_passes(arguments)))
    measured = {"every": every, "turns": turns, "passes": copies}
    keep(arguments, "snapshot", measured)
    tell(figures.of_snapshot(measured))
    return True


def batch_of(arguments, model):
    if arguments.trial:
        return 32
    return 2048 if model == "mlp" else 128


def holdfast(arguments, name, *, model, precision, data, batch, snapshot_every=0):
    folder = arguments.work / f"{name}-{os.getpid()}"
    # Holdfast refuses others on CPUs.
    precision = precision if arguments.device == "cuda" else "f32"
    command = [arguments.bin / "gpu_training", "--model", model, "--precision", precision, "--data", data]
    command += ["--batch", batch, "--device", arguments.device, "--run-dir", folder / "run"]
    command += ["--divisor", TRIAL_DIVISOR if arguments.trial else 1, "--snapshot-every", snapshot_every]
    return Contender(folder, arguments.out / f"{name}.log", command, arguments.patience)


class Nobody:
    """Where a peer is not there."""

    def __enter__(self):
        return None

    def __exit__(self, *failure):
        pass


def peer_of(arguments, model, precision):
    look = [arguments.python, "-c", "import torch; print(torch.__version__)"]
    found = subprocess.run(look, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, check=False)
    if found.returncode != 0:
        print(f"{arguments.python} has no PyTorch: nothing to compare with", flush=True)
        return Nobody()
    print(f"PyTorch {found.stdout.decode().strip()}", flush=True)
    command = [arguments.python, HERE / "peer.py", "--model", model, "--precision", precision]
    command += ["--batch", batch_of(arguments, model), "--device", arguments.peer_device]
    command += ["--divisor", TRIAL_DIVISOR if arguments.trial else 1]
    folder = arguments.work / f"peer-{os.getpid()}"
    return Contender(folder, arguments.out / f"peer-{arguments.case}.log", command, arguments.patience)


class Comparison:
    """Contenders by name that make steps in turns; who fails is left out from then on, and why is kept."""

    def __init__(self, turn_seconds):
        self.turn_seconds = turn_seconds
        self.step_seconds = {}  # by contender: of each round
        self.losses = {}
        self.failures = {}

    def turn(self, name, ask):
        """`ask(warm, steps)` has a turn of its own: first a short one, which tells how many steps a long one has."""
        if name in self.failures:
            return
        before = self.step_seconds.get(name)
        warm, steps = (2, 5) if before is None else (5, max(5, min(5000, int(self.turn_seconds / before[-1]))))
        try:
            told = ask(warm, steps)
        except Failed as failure:
            told = {"error": str(failure)}
        if "error" in told:
            self.failures[name] = told["error"]
            self.step_seconds.pop(name, None)
            print(f"{name} is left out: {told['error']}", flush=True)
            return
        print(f"{name}: {told['seconds'] / told['steps'] * 1e3:.3f} ms a step, loss {told['loss']:.4f}", flush=True)
        self.step_seconds.setdefault(name, []).append(told["seconds"] / told["steps"])
        self.losses.setdefault(name, []).append(told["loss"])

    def without_first_round(self):
        return {name: seconds[1:] for name, seconds in self.step_seconds.items() if len(seconds) > 1}


def compare_training(arguments, case, model, precision, places):
    comparison = Comparison(0.05 if arguments.trial else arguments.turn_seconds)
    options = {"model": model, "precision": precision, "batch": batch_of(arguments, model)}
    running = {}
    try:
        peer = peer_of(arguments, model, precision)
        if not isinstance(peer, Nobody):
            running["pytorch"] = peer.__enter__()
        for data in places:
            running[data] = holdfast(arguments, f"{case}-{data}", data=data, **options).__enter__()
        # The first round says how long a step takes.
        for _ in range(arguments.rounds + 1):
            for data in places:
                comparison.turn(f"holdfast/{data}", running[data].turn)
                for way in arguments.ways if "pytorch" in running else ():
                    ask = lambda warm, steps, name=f"{way}/{data}": running["pytorch"].turn(warm, steps, name)  # noqa: E731
                    comparison.turn(f"{way}/{data}", ask)
    finally:
        for contender in running.values():
            contender.__exit__(None, None, None)
    seconds = comparison.without_first_round()
    measured = {"model": model, "precision": precision, "batch": options["batch"], "step_seconds": seconds}
    measured |= {"losses": comparison.losses, "failures": comparison.failures}
    measured["divisor"] = TRIAL_DIVISOR if arguments.trial else 1
    keep(arguments, case, measured)
    tell(line for data in places for line in figures.of_training(measured, data, arguments.ways, read_limits(arguments)))
    is_ours_there = all(f"holdfast/{data}" in seconds for data in places)
    return is_ours_there and all(figures.best_way(seconds, data, arguments.ways) for data in places)


CASES = {
    "limits": measure_limits,
    "passes": measure_passes,
    "snapshot": measure_snapshot,
    "mlp-tf32": lambda arguments: compare_training(arguments, "mlp-tf32", "mlp", "tf32", ("device", "host")),
    "mlp-bf16": lambda arguments: compare_training(arguments, "mlp-bf16", "mlp", "bf16", ("device", "host")),
    "lenet5": lambda arguments: compare_training(arguments, "lenet5", "lenet5", "tf32", ("device",)),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--bin", type=Path, required=True, help="folder of gpu_training and its like")
    parser.add_argument("--out", type=Path, required=True, help="for figures and logs")
    parser.add_argument("--work", type=Path, help="for what runs need and leave (default: OUT/runs)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has PyTorch")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--peer-device", choices=("cpu", "cuda"), help="of PyTorch and its like (default: the same)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=WAYS, help="of PyTorch's, with commas")
    parser.add_argument("--turn-seconds", type=float, default=0.5, help="how long a turn of training takes")
    parser.add_argument("--patience", type=float, default=100, help="seconds that one answer may take")
    parser.add_argument("--trial", action="store_true", help="little models, short turns")
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    arguments = parse_arguments()
    arguments.bin, arguments.out = arguments.bin.absolute(), arguments.out.absolute()
    arguments.peer_device = arguments.peer_device or arguments.device
    arguments.work = (arguments.work or arguments.out / "runs").absolute()
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        return 0 if CASES[arguments.case](arguments) else 1
    except (Failed, subprocess.TimeoutExpired) as failure:
        print(f"{arguments.case}: {failure}", flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
