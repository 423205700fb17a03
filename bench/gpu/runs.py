"""Compares Holdfast with PyTorch on one GPU, in turns within one run. Prints each figure with its goal.

    runs.py limits|passes|snapshot|mlp-tf32|mlp-bf16|lenet5 --bin DIR --out DIR [--python PYTHON] [--rounds 5]
            [--seconds 600] [--limits FILE] [--trial]

limits first: the others state their shares of what it measured and left in FILE (DIR/limits.json). Each adds its
numbers to DIR/figures.json, prints lines that begin with "figure: ", and leaves what contenders print in the work
folder's logs/. It makes fewer rounds, but two, where more do not fit into --seconds; what is cut off is kept and told
as far as it got. --trial takes little models, to see that all of it works. No GPU is needed for that with --peer-device
cpu and --device cpu, or with a library in HOLDFAST_CUDA_LIBRARY that computes elsewhere than on a GPU.

Exit code: 0 all was measured, whatever the results; 1 something could not be measured, and why is printed; 77 the
machine has no GPU.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import figures
from budget import Budget
from contender import Contender, Failed, all_of

HERE = Path(__file__).resolve().parent
# Compilers come last, so that the other figures exist even if compiling takes too long.
WAYS = ("eager", "graph", "compiled", "compiled-graph")
NO_GPU = 77
TRIAL_DIVISOR = 100
# Results from fewer rounds say little.
LEAST_ROUNDS = 2
# The part of --seconds that is kept for contenders to end.
END_SECONDS = 8


def patience(arguments, share=1):
    """Seconds that one answer may take: a share of the remaining time."""
    return min(arguments.patience, share * arguments.budget.left())


def run_program(arguments, name, *options):
    """A program's standard output, parsed as JSON. Ends this program if there is no GPU."""
    done = subprocess.run(
        [str(arguments.bin / name), *options], stdout=subprocess.PIPE, timeout=patience(arguments), check=False
    )
    if done.returncode == NO_GPU:
        sys.exit(NO_GPU)
    if done.returncode != 0:
        raise Failed(f"{name} ended with code {done.returncode}")
    return json.loads(done.stdout)


def read_limits(arguments):
    """The results of `limits`, also from an earlier start; nothing if it was not run."""
    return json.loads(arguments.limits.read_text()) if arguments.limits.is_file() else {}


def keep(arguments, name, measured):
    """Writes all cases into one file, since some machines return only a few files."""
    path = arguments.out / "figures.json"
    kept = json.loads(path.read_text()) if path.is_file() else {}
    # If this program is killed here, the numbers of other cases must not be lost.
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({**kept, name: measured}, indent=1) + "\n")
    beside.replace(path)


def tell(lines):
    for line in lines:
        print(f"figure: {line}", flush=True)


@contextlib.contextmanager
def reported(arguments, name, measured, lines):
    """Saves and prints `measured` when the body ends, also after a failure. Use it within the context of contenders:
    they may take long to end, and this program may be killed then."""
    try:
        yield
    finally:
        result = measured()
        keep(arguments, name, result)
        tell(lines(result))


def measure_limits(arguments):
    measured = run_program(arguments, "gpu_limits", *(["--small"] if arguments.trial else []))
    arguments.limits.write_text(json.dumps(measured, indent=1) + "\n")
    keep(arguments, "limits", measured)
    tell(figures.of_limits(measured))
    return True


def floats_of_passes(arguments):
    parameters = figures.mlp_parameters(TRIAL_DIVISOR if arguments.trial else 1)
    return ["--floats", str((parameters + 15) // 16 * 16)]


def measure_passes(arguments):
    """Compares Adam and copies of the state with the CUDA runtime's own copies, in turns."""
    options = floats_of_passes(arguments)
    measured = {"holdfast": [], "runtime": [], "pytorch_adam_seconds": []}
    # The update needs no samples.
    peers = peer_of(arguments, "mlp", "f32", batch=1)
    with all_of(peers), reported(arguments, "passes", lambda: measured, figures.of_passes):
        # Started and warm, so that it does not disturb the others.
        adam = adam_of(arguments, peers)
        for _ in arguments.budget.rounds(arguments.rounds, LEAST_ROUNDS):
            measured["holdfast"].append(run_program(arguments, "gpu_passes", *options))
            if arguments.peer_device == "cuda":
                measured["runtime"].append(run_program(arguments, "gpu_limits", "--copies-only", *options))
            if adam:
                measured["pytorch_adam_seconds"].append(adam())
    are_all_there = bool(measured["runtime"]) and bool(measured["pytorch_adam_seconds"])
    return are_enough(arguments, len(measured["holdfast"])) and are_all_there


def adam_of(arguments, peers):
    """A function that runs PyTorch's update and returns its seconds; None, after a message, if that is impossible."""

    def seconds():
        told = peers["pytorch"].turn(5, 50, patience(arguments, 0.5), "adam")
        if "error" in told:
            raise Failed(told["error"])
        return told["seconds"] / told["steps"]

    if not peers:
        return None
    await_start(arguments, peers)
    try:
        seconds()
        return seconds
    except Failed as failure:
        print(f"PyTorch's Adam is left out: {failure}", flush=True)
        return None


def measure_snapshot(arguments):
    """Measures how long training waits when the state is copied into the watchdog's memory."""
    # So rare that the previous snapshot has arrived: it is copied and digested while training goes on.
    every = 10 if arguments.trial else 300
    steps = [figures.SNAPSHOT_WARM, 3 * every]
    # The faster precision: the state is the same, and more steps fit into the time.
    model = {"model": "mlp", "precision": "tf32", "data": "host", "batch": batch_of(arguments, "mlp")}
    measured = {"every": every, "turns": [], "passes": []}
    ours = holdfast(arguments, "snapshot", **model, snapshot_every=every)
    with ours, reported(arguments, "snapshot", lambda: measured, figures.of_snapshot):
        # The first snapshot also allocates its memory, which happens once.
        ours.turn(*steps, patience(arguments))
        for _ in arguments.budget.rounds(arguments.rounds, LEAST_ROUNDS):
            measured["turns"].append(ours.turn(*steps, patience(arguments)))
            measured["passes"].append(run_program(arguments, "gpu_passes", *floats_of_passes(arguments)))
    return are_enough(arguments, len(measured["passes"]))


def are_enough(arguments, rounds):
    if rounds < min(LEAST_ROUNDS, arguments.rounds):
        print(f"{arguments.case}: there was time for {rounds} rounds; {LEAST_ROUNDS} are the least", flush=True)
        return False
    return True


def batch_of(arguments, model):
    if arguments.trial:
        return 32
    return 2048 if model == "mlp" else 128


def holdfast(arguments, name, *, model, precision, data, batch, snapshot_every=0):
    folder = arguments.work / f"{name}-{os.getpid()}"
    # Holdfast refuses other precisions on CPUs.
    precision = precision if arguments.device == "cuda" else "f32"
    command = [arguments.bin / "gpu_training", "--model", model, "--precision", precision, "--data", data]
    command += ["--batch", batch, "--device", arguments.device, "--run-dir", folder / "run"]
    command += ["--divisor", TRIAL_DIVISOR if arguments.trial else 1, "--snapshot-every", snapshot_every]
    return Contender(folder, arguments.work / "logs" / f"{name}.log", command)


def peer_of(arguments, model, precision, batch):
    """The peer by its name; empty if PyTorch is not installed."""
    # PyTorch is not imported for this, since that takes as long as a round.
    look = [arguments.python, "-c", "from importlib import metadata; print(metadata.version('torch'))"]
    found = subprocess.run(look, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=False)
    if found.returncode != 0:
        print(f"{arguments.python} has no PyTorch: nothing to compare with", flush=True)
        return {}
    print(f"PyTorch {found.stdout.decode().strip()}", flush=True)
    command = [arguments.python, HERE / "peer.py", "--model", model, "--precision", precision]
    command += ["--batch", batch, "--device", arguments.peer_device]
    command += ["--divisor", TRIAL_DIVISOR if arguments.trial else 1]
    folder = arguments.work / f"peer-{os.getpid()}"
    return {"pytorch": Contender(folder, arguments.work / "logs" / f"peer-{arguments.case}.log", command)}


def await_start(arguments, peers):
    """Lets the peer import PyTorch before the first of its ways. From a cold disk the import may exceed the time limit
    of a way, which would then be left out."""
    if "pytorch" in peers:
        with contextlib.suppress(Failed):
            peers["pytorch"].turn(0, 1, patience(arguments, 0.5), "start")


class Comparison:
    """Lets contenders, by name, make steps in turns. One that fails is left out from then on; the reason is kept."""

    def __init__(self, turn_seconds, patience):
        self.turn_seconds = turn_seconds
        self.patience = patience  # says how long an answer may take, of what is left a share
        self.step_seconds = {}  # by contender: of each round
        self.losses = {}
        self.failures = {}

    def turn(self, name, ask):
        """`ask(warm, steps, patience)` makes a turn. A short turn comes first; it determines the steps of a long one. A
        contender that was measured before and is interrupted by the end of the time has not failed."""
        before = self.step_seconds.get(name)
        if name in self.failures:
            return
        if self.patience() == 0:
            if not before:
                self.failures[name] = "no time was left"
            return
        warm, steps = (2, 5) if before is None else (5, max(5, min(5000, int(self.turn_seconds / before[-1]))))
        try:
            # A contender that takes long to start, such as a compiler, leaves time for rounds of the others.
            told = ask(warm, steps, self.patience(0.5 if before is None else 1))
        except Failed as failure:
            told = {"error": str(failure)}
        if "error" not in told:
            self.step_seconds.setdefault(name, []).append(told["seconds"] / told["steps"])
            self.losses.setdefault(name, []).append(told["loss"])
            print(f"{name}: {told['seconds'] / told['steps'] * 1e3:.3f} ms a step, loss {told['loss']:.4f}", flush=True)
        elif not before or self.patience() > 0:
            self.failures[name] = told["error"]
            self.step_seconds.pop(name, None)
            print(f"{name} is left out: {told['error']}", flush=True)

    def measured(self):
        counted = {name: seconds[1:] for name, seconds in self.step_seconds.items() if len(seconds) > 1}
        first = {name: seconds[:1] for name, seconds in self.step_seconds.items()}
        return {
            "step_seconds": counted,
            "first_round_step_seconds": first,
            "losses": self.losses,
            "failures": self.failures,
        }


def compare_training(arguments, case, model, precision, places):
    comparison = Comparison(
        0.05 if arguments.trial else arguments.turn_seconds, lambda share=1: patience(arguments, share)
    )
    options = {"model": model, "precision": precision, "batch": batch_of(arguments, model)}
    limits = read_limits(arguments)
    contenders = peer_of(arguments, **options)
    contenders |= {data: holdfast(arguments, f"{case}-{data}", data=data, **options) for data in places}

    def measured():
        divisor = TRIAL_DIVISOR if arguments.trial else 1
        return {**options, "divisor": divisor, "limits": limits, **comparison.measured()}

    def lines(result):
        return (line for data in places for line in figures.of_training(result, data, arguments.ways, limits))

    def make_round():
        for data in places:
            comparison.turn(f"holdfast/{data}", contenders[data].turn)
            for way in arguments.ways if "pytorch" in contenders else ():
                name = f"{way}/{data}"
                comparison.turn(name, lambda *turn, name=name: contenders["pytorch"].turn(*turn, name))

    with all_of(contenders), reported(arguments, case, measured, lines):
        await_start(arguments, contenders)
        # Shows how long a step takes, and does not count.
        make_round()
        for _ in arguments.budget.rounds(arguments.rounds, LEAST_ROUNDS):
            make_round()
    seconds = comparison.measured()["step_seconds"]
    rounds = min(len(seconds.get(f"holdfast/{data}", [])) for data in places)
    return are_enough(arguments, rounds) and all(figures.best_way(seconds, data, arguments.ways) for data in places)


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
    parser.add_argument("--out", type=Path, required=True, help="for figures.json")
    parser.add_argument("--work", type=Path, help="for what runs need and leave, logs among it (default: OUT/runs)")
    parser.add_argument("--limits", type=Path, help="what limits measured (default: OUT/limits.json)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has PyTorch")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--peer-device", choices=("cpu", "cuda"), help="of PyTorch and its like (default: the same)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=600, help="for all of it (default: 600)")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=WAYS, help="of PyTorch's, with commas")
    parser.add_argument("--turn-seconds", type=float, default=0.5, help="how long a turn of training takes")
    parser.add_argument("--patience", type=float, default=100, help="seconds that one answer may take at most")
    parser.add_argument("--trial", action="store_true", help="little models, short turns")
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    arguments = parse_arguments()
    arguments.bin, arguments.out = arguments.bin.absolute(), arguments.out.absolute()
    arguments.peer_device = arguments.peer_device or arguments.device
    arguments.work = (arguments.work or arguments.out / "runs").absolute()
    arguments.limits = (arguments.limits or arguments.out / "limits.json").absolute()
    arguments.budget = Budget(arguments.seconds - END_SECONDS)
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        return 0 if CASES[arguments.case](arguments) else 1
    except (Failed, subprocess.TimeoutExpired) as failure:
        print(f"{arguments.case}: {failure}", flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
