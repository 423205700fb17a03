"""Kills replicas of training runs at random moments and measures each recovery; bench/recovery starts it.

A moment of death is taken just before the signal is sent. Everything after it is read from the lines that each process
writes for each step it committed, and from the run's journal: all by the system clock, in microseconds.
"""

import argparse
import contextlib
import json
import math
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

REPLICAS = 4
SETTLED_STEPS = 3  # of a whole generation, before somebody dies
PATIENCE = 180  # seconds; what takes longer is a failure of this program's subject
WARM_UP = 5  # seconds of a run that throughput does not count
TICK = 0.1
STOPPED = 75  # the exit code of a run that was asked to stop

WAYS = {
    "spare": ["--spares", "1", "--when-lost", "wait"],
    "wait": ["--when-lost", "wait"],
    "shrink": ["--when-lost", "shrink"],
    "savepoint": ["--when-lost", "wait", "--recover-from", "savepoint"],
}
TITLES = {
    "spare": "hot spare",
    "wait": "new process",
    "shrink": "shrink",
    "savepoint": "savepoint restart",
    "torchrun": "torchrun, restart from a checkpoint",
}


class Tail:
    """Returns the lines that were added to a file since the last call."""

    def __init__(self, path):
        self.path = path
        self.offset = 0

    def new_lines(self):
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            whole, newline, _ = file.read().rpartition(b"\n")
        self.offset += len(whole) + len(newline)
        return whole.decode().splitlines()


class Generation:
    """The steps that its members committed: by process, (step, seconds) in order."""

    def __init__(self, number, size):
        self.number = number
        self.size = size
        self.steps = {}

    def is_whole(self):
        return len(self.steps) == self.size

    def shortest(self):
        return min(len(lines) for lines in self.steps.values()) if self.is_whole() else 0

    def first_step(self):
        """The first step that all members committed, and when the last of them did; None before that."""
        if not self.is_whole():
            return None
        step = max(lines[0][0] for lines in self.steps.values())
        moments = [dict(lines).get(step) for lines in self.steps.values()]
        return None if None in moments else (step, max(moments))

    def last_step(self):
        return max(lines[-1][0] for lines in self.steps.values())

    def last_moment(self):
        return max(lines[-1][1] for lines in self.steps.values())

    def longest_step(self):
        return max(self.durations())

    def durations(self):
        for lines in self.steps.values():
            yield from (after[1] - before[1] for before, after in zip(lines, lines[1:]))


class Run:
    """A training run that lasts until the context is left."""

    def __init__(self, command, folder, cores=None, environment=None):
        self.folder = folder
        self.generations = {}
        self.journal = []
        self.tails = {}
        self.journal_tail = Tail(os.path.join(folder, "run", "journal.jsonl"))
        self.output = open(os.path.join(folder, "output.txt"), "wb")
        self.process = subprocess.Popen(
            command, stdout=self.output, stderr=subprocess.STDOUT, env=environment,
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()

    def look(self):
        for entry in os.scandir(self.folder):
            if entry.name.startswith("steps-") and entry.name not in self.tails:
                self.tails[entry.name] = Tail(entry.path)
        for name, tail in self.tails.items():
            pid = int(re.search(r"\d+", name).group())
            for line in tail.new_lines():
                self.take_step(pid, line)
        self.look_into_journal()

    def take_step(self, pid, line):
        number, _, size, step, microseconds = map(int, line.split())
        generation = self.generations.setdefault(number, Generation(number, size))
        generation.steps.setdefault(pid, []).append((step, microseconds / 1e6))

    def look_into_journal(self):
        if os.path.exists(self.journal_tail.path):
            self.journal += map(json.loads, self.journal_tail.new_lines())

    def newest(self):
        return self.generations[max(self.generations)] if self.generations else None

    def wait_until(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while True:
            self.look()
            result = condition()
            if result:
                return result
            if self.process.poll() is not None or time.monotonic() > deadline:
                state = "goes on" if self.process.poll() is None else f"ended with {self.process.returncode}"
                raise RuntimeError(f"waited for {what} in vain; the run {state}: {self.tail_of_output()}")
            time.sleep(TICK)

    def tail_of_output(self):
        with open(self.output.name, errors="replace") as file:
            return "".join(file.readlines()[-5:])

    def is_settled(self, spares):
        newest = self.newest()
        if newest is None or newest.size != REPLICAS or newest.shortest() < SETTLED_STEPS:
            return False
        # Otherwise a recovery that lost steps would not make up for them, and deaths at one step would end the run.
        furthest = max((generation.last_step() for generation in self.generations.values() if generation is not newest),
                       default=0)
        return newest.last_step() >= furthest + SETTLED_STEPS and self.waiting_spares() >= spares

    def waiting_spares(self):
        ready = {line["pid"] for line in self.journal if line["event"] == "ready"}
        used = {pid for generation in self.generations.values() for pid in generation.steps}
        gone = {line.get("pid") for line in self.journal if line["event"] in ("died", "exited")}
        return len(ready - used - gone)

    def step_seconds(self):
        """The median time of a step over all replicas."""
        whole = [generation for generation in self.generations.values() if generation.size == REPLICAS]
        return statistics.median(duration for generation in whole for duration in generation.durations())

    def pauses(self):
        """Seconds between the last step of each generation and the first of the next, minus the time of a step."""
        ordered = [self.generations[number] for number in sorted(self.generations)]
        firsts = [(before, after.first_step()) for before, after in zip(ordered, ordered[1:])]
        return [first[1] - before.last_moment() - self.step_seconds() for before, first in firsts if first]

    def committed(self):
        return max((generation.last_step() for generation in self.generations.values()), default=0)


def kill(run, chance):
    """Kills a random replica. Returns its generation, its process and the moment."""
    generation = run.newest()
    pid = chance.choice(sorted(generation.steps))
    moment = time.time()
    os.kill(pid, signal.SIGKILL)
    return generation, pid, moment


def next_generation(run, number):
    later = [run.generations[n] for n in sorted(run.generations) if n > number]
    return next((generation for generation in later if generation.first_step()), None)


def moments_of_journal(run, pid, committed):
    """One death: when the watchdog saw and did things, until the next step was committed, as absolute times."""
    begin = next((i for i, line in enumerate(run.journal)
                  if line["event"] in ("died", "exited") and line.get("pid") == pid), None)
    if begin is None:
        return {}
    moments = {"noticed": run.journal[begin]["time"]}
    for line in run.journal[begin:]:
        if line["time"] > committed:
            break
        if line["event"] == "checked_in" and "opened" not in moments:
            moments.setdefault("first survivor", line["time"])
            moments["all survivors"] = line["time"]
        if any(action["action"] == "open_generation" for action in line.get("actions", [])):
            moments.setdefault("opened", line["time"])
    return moments


def measure_death(run, chance, spares):
    run.wait_until(lambda: run.is_settled(spares), "a run that has settled")
    time.sleep(chance.uniform(0, 2 * run.step_seconds()))
    generation, pid, death = kill(run, chance)
    after = run.wait_until(lambda: next_generation(run, generation.number), "the next generation's first step")
    step, committed = after.first_step()
    # The last lines of this death in the journal may be written after those of the step.
    run.wait_until(lambda: not run.journal or "noticed" in moments_of_journal(run, pid, committed), "the journal")
    moments = {**moments_of_journal(run, pid, committed), "committed": committed}
    return {"seconds": {name: moment - death for name, moment in moments.items()},
            "steps_lost": max(0, generation.last_step() + 1 - step)}


def holdfast_command(arguments, folder, *options):
    return [arguments.program, "--folder", folder, *options]


def torchrun_command(arguments, folder):
    peer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recovery_peer.py")
    return [arguments.torch, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(REPLICAS),
            "--max_restarts", "1000000", "--monitor_interval", "0.1",
            peer, "--folder", folder, "--save-every", str(arguments.save_every)]


def start(arguments, way, folder):
    if way == "torchrun":
        return Run(torchrun_command(arguments, folder), folder, environment={**os.environ, "OMP_NUM_THREADS": "1"})
    saving = ["--save-every", str(arguments.save_every)] if way == "savepoint" else []
    return Run(holdfast_command(arguments, folder, *WAYS[way], *saving), folder)


@contextlib.contextmanager
def folder_for(arguments, name):
    with tempfile.TemporaryDirectory(prefix=f"holdfast-recovery-{name}-", dir=arguments.folder) as folder:
        yield folder


def measure_way(arguments, way):
    chance = random.Random(f"{arguments.seed} {way}")
    deaths = []
    with folder_for(arguments, way) as folder, start(arguments, way, folder) as run:
        for i in range(arguments.deaths):
            deaths.append(measure_death(run, chance, spares=1 if way == "spare" else 0))
            print(f"{TITLES[way]}: death {i + 1} of {arguments.deaths}: "
                  f"next step after {deaths[-1]['seconds']['committed']:.3f} s", file=sys.stderr)
        return {"deaths": deaths, "step_seconds": run.step_seconds()}


def percentile(values, share):
    values = sorted(values)
    return values[max(0, math.ceil(share * len(values)) - 1)]


def cell(deaths, name, less=0.0):
    values = [death["seconds"][name] - less for death in deaths if name in death["seconds"]]
    if not values:
        return "-"
    return f"{1000 * percentile(values, 0.5):.1f} / {1000 * percentile(values, 0.99):.1f}"


def lost_cell(deaths):
    lost = [death["steps_lost"] for death in deaths]
    return f"{statistics.mean(lost):.1f} (at most {max(lost)})"


def print_deaths(results):
    print("\nMilliseconds from the death, p50 / p99:\n")
    print("| | deaths | a step | noticed | first survivor out | all survivors out | generation opened "
          "| next step committed | less one step | steps computed again |")
    print("| --- |" + " ---: |" * 9)
    for way, result in results.items():
        deaths, step = result["deaths"], result["step_seconds"]
        names = ("noticed", "first survivor", "all survivors", "opened", "committed")
        cells = [cell(deaths, name) for name in names] + [cell(deaths, "committed", step), lost_cell(deaths)]
        print(f"| {TITLES[way]} | {len(deaths)} | {1000 * step:.0f} | " + " | ".join(cells) + " |")


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def goodput_run(arguments, period):
    """Steps per second while a random replica dies every `period` seconds, and the watchdog's share of a core."""
    chance = random.Random(f"{arguments.seed} {period}")
    with folder_for(arguments, "goodput") as folder, start(arguments, "spare", folder) as run:
        run.wait_until(lambda: run.is_settled(1), "a run that has settled")
        first, begin, busy = run.committed(), time.monotonic(), processor_seconds(run.process.pid)
        end = begin + arguments.seconds
        death = begin + period / 2 if period else end
        while death < end:
            time.sleep(max(0.0, death - time.monotonic()))
            run.look()
            kill(run, chance)
            death += period
        time.sleep(max(0.0, end - time.monotonic()))
        run.look()
        seconds = time.monotonic() - begin
        return {"period": period, "steps_per_second": (run.committed() - first) / seconds,
                "pauses": run.pauses(), "share_outside_pauses": 1 - sum(run.pauses()) / seconds,
                "watchdog_share": (processor_seconds(run.process.pid) - busy) / seconds}


def measure_goodput(arguments):
    # Measured undisturbed before and after, since the speed of a shared machine changes.
    runs = []
    for period in (0, 60, 15, 0):
        runs.append(goodput_run(arguments, period))
        print(f"goodput: a death every {period} s: {runs[-1]['steps_per_second']:.2f} steps/s", file=sys.stderr)
    return runs


def print_goodput(runs):
    undisturbed = statistics.mean(run["steps_per_second"] for run in runs if not run["period"])
    print("\nWith a hot spare:\n\n| a death every | deaths | steps a second | of undisturbed "
          "| time outside the pauses |\n| --- |" + " ---: |" * 4)
    for run in runs:
        period = f"{run['period']} s" if run["period"] else "never"
        print(f"| {period} | {len(run['pauses'])} | {run['steps_per_second']:.2f} "
              f"| {100 * run['steps_per_second'] / undisturbed:.1f} % | {100 * run['share_outside_pauses']:.1f} % |")
    shares = [run["watchdog_share"] for run in runs if not run["period"]]
    print(f"\nThe watchdog of four undisturbed replicas used {100 * statistics.mean(shares):.2f} % of one core.")


def at_a_step(run):
    """The number and the moment of the next step, and the processor time of the run until then."""
    run.look()
    before = run.committed()
    deadline = time.monotonic() + PATIENCE
    while run.committed() == before:
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited for step {before + 1} in vain: {run.tail_of_output()}")
        time.sleep(TICK / 20)
        run.look()
    newest = run.newest()
    processes = {run.process.pid, *newest.steps}
    return newest.last_step(), newest.last_moment(), sum(map(processor_seconds, processes))


def cost_of_steps(arguments, *options):
    """Seconds and processor time per step of one process, with its watchdog, if any, on the same core."""
    core = {min(os.sched_getaffinity(0))}
    with folder_for(arguments, "watching") as folder:
        with Run(holdfast_command(arguments, folder, *options), folder, cores=core) as run:
            run.wait_until(lambda: run.newest() and run.newest().first_step(), "the first step")
            time.sleep(WARM_UP)
            first_step, first_moment, first_time = at_a_step(run)
            time.sleep(arguments.seconds / 4)
            last_step, last_moment, last_time = at_a_step(run)
            steps = last_step - first_step
            return {"seconds": (last_moment - first_moment) / steps, "processor": (last_time - first_time) / steps}


def measure_watching(arguments):
    rounds = []
    for number in range(arguments.rounds):
        # A different one comes first each time, since the speed of a shared machine changes.
        kinds = [("alone", ["--alone"]), ("watched", ["--replicas", "1"])]
        costs = {name: cost_of_steps(arguments, *options) for name, options in kinds[::1 if number % 2 else -1]}
        rounds.append(costs)
        for name, cost in costs.items():
            print(f"watching: {name}: {1000 * cost['seconds']:.1f} ms a step, "
                  f"{1000 * cost['processor']:.1f} ms of processor time", file=sys.stderr)
    return rounds


def print_watching(rounds):
    print("\nOne replica with four shards, pinned to one core with its watchdog, and the same training without a "
          "watchdog:\n\n| a step | alone | watched | watching costs (median of the pairs, from, to) |\n| --- |" + " ---: |" * 3)
    for measure, title in (("seconds", "time"), ("processor", "processor time")):
        alone, watched = (1000 * statistics.median(costs[name][measure] for costs in rounds)
                          for name in ("alone", "watched"))
        extra = [100 * (costs["watched"][measure] / costs["alone"][measure] - 1) for costs in rounds]
        print(f"| {title} | {alone:.1f} ms | {watched:.1f} ms "
              f"| {statistics.median(extra):.1f} % ({min(extra):.1f}, {max(extra):.1f}) |")


def preempt(arguments, replicas, width, number, chance):
    """The time from SIGTERM at a random moment to the end of the program, and what it left."""
    with folder_for(arguments, f"preemption-{replicas}") as folder:
        options = ["--replicas", str(replicas), "--width", str(width)]
        with Run(holdfast_command(arguments, folder, *options), folder) as run:
            run.wait_until(lambda: run.newest() and run.newest().shortest() >= SETTLED_STEPS, "a run that has settled")
            time.sleep(chance.random() * 2 * run.newest().longest_step())
            begin = time.monotonic()
            run.process.terminate()
            code = run.process.wait(PATIENCE)
            seconds = time.monotonic() - begin
            run.look()
            saved = [path for path in os.scandir(os.path.join(folder, "run")) if path.name.endswith(".h5")]
            if code != STOPPED or len(saved) != 1 or int(re.search(r"\d+", saved[0].name).group()) != run.committed():
                raise RuntimeError(f"ended with {code} after step {run.committed()} and left "
                                   f"{[path.name for path in saved]}: {run.tail_of_output()}")
            print(f"preemption: {replicas} replicas: {number}: {seconds:.2f} s", file=sys.stderr)
            return {"seconds": seconds, "file_bytes": saved[0].stat().st_size, "step": run.newest().longest_step()}


def measure_preemption(arguments):
    chance = random.Random(f"{arguments.seed} preemption")
    return {replicas: [preempt(arguments, replicas, arguments.width, number, chance)
                       for number in range(1, arguments.preemptions + 1)]
            for replicas in (1, 2, REPLICAS)}


def print_preemption(results):
    print("\nSIGTERM at a random moment, until the program has ended with exit code 75 and a durable savepoint of the newest "
          "step:\n\n| replicas | times | the savepoint | a step | seconds, median | most |\n| --- |" + " ---: |" * 5)
    for replicas, runs in results.items():
        seconds = [run["seconds"] for run in runs]
        print(f"| {replicas} | {len(runs)} | {runs[0]['file_bytes'] / 1e6:.0f} MB "
              f"| {statistics.median(run['step'] for run in runs):.2f} s | {statistics.median(seconds):.2f} "
              f"| {max(seconds):.2f} |")


def has_torch(python):
    if python is None:
        print("torchrun is left out: --torch names no Python that has PyTorch", file=sys.stderr)
        return False
    # Python 3.11 of Debian 12 cannot run the torchrun of its PyTorch 1.13.
    subprocess.run([python, "-c", "import torch.distributed.run"], check=True, timeout=PATIENCE)
    return True


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--deaths", type=int, default=200, help="in each way; 0: none")
    parser.add_argument("--ways", default=",".join(TITLES), help="comma-separated, of " + ", ".join(TITLES))
    parser.add_argument("--long", action="store_true", help="goodput under deaths, and what watching costs, too")
    parser.add_argument("--seconds", type=float, default=120, 
                        help="of each run of goodput; a quarter of each of watching")
    parser.add_argument("--rounds", type=int, default=8, help="pairs of runs with and without a watchdog")
    parser.add_argument("--preemptions", type=int, default=0, help="SIGTERMs with 1, 2 and 4 replicas each")
    parser.add_argument("--width", type=int, default=8192, help="of the model that is preempted; 8192: 1 GB of state")
    parser.add_argument("--save-every", type=int, default=10, help="steps between savepoints, where they serve")
    parser.add_argument("--seed", type=int, default=1, help="of who dies and when")
    parser.add_argument("--torch", help="a Python that has PyTorch; without it torchrun is left out")
    parser.add_argument("--folder", help="for runs; default: the system's for temporary files")
    parser.add_argument("--json", help="file for all figures")
    return parser.parse_args()


def write_figures(arguments, figures):
    """Writes the results after each part, so that a part that fails does not lose those of the others."""
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=1)


def main():
    # On SIGTERM, too, runs must end and folders must be removed.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    arguments = parse_arguments()
    ways = arguments.ways.split(",") if arguments.deaths else []
    results = {}
    figures = {"deaths": results}
    for way in ways:
        if way != "torchrun" or has_torch(arguments.torch):
            results[way] = measure_way(arguments, way)
            write_figures(arguments, figures)
    if results:
        print_deaths(results)
    if arguments.long:
        figures["goodput"] = measure_goodput(arguments)
        write_figures(arguments, figures)
        print_goodput(figures["goodput"])
        figures["watching"] = measure_watching(arguments)
        print_watching(figures["watching"])
    if arguments.preemptions:
        figures["preemption"] = measure_preemption(arguments)
        print_preemption(figures["preemption"])
    write_figures(arguments, figures)


if __name__ == "__main__":
    main()
