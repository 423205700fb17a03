"""Kills hosts of training runs and cuts them off at random moments, and measures each recovery; bench/hosts starts it.

The moments of a death and of a cut are taken just before. Everything after it is read from the lines that each process
writes for each step it committed, from the run's journal, and from what agents write: all by the system clock, which is
one clock here, since all hosts are on this machine.
"""

import argparse
import json
import os
import random
import re
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from host_networks import DIRECTIONS, HostNetworks, why_not
from recovery_runs import PATIENCE, SETTLED_STEPS, STOPPED, Run, Tail, next_generation, percentile
from torch_hosts import TorchRun, kill_host_of_torch

PORT = 29400
WARM_STEPS = 50  # of a run, before its steps are measured
MEASURED_STEPS = 400
PLACE_REST = 5  # seconds
STATE_WIDTH = 3761  # of a model whose parameters and two slots of Adam are 256 MiB


def state_mib(width):
    """What recovery_program's model and its optimizer have."""
    widths = [784, width, width, 1408, 10]
    return sum(12 * (inputs + 1) * outputs for inputs, outputs in zip(widths, widths[1:])) / 2**20


STATE_MIB = round(state_mib(STATE_WIDTH))
HEAD_LOST = "the head was lost"  # an agent writes it when its generation has ended


class Host:
    """`holdfast run` on a host, with the moment of each line that it writes, and of its end."""

    def __init__(self, networks, host, command):
        self.process = networks.start(host, command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      errors="replace")
        self.lines = []
        self.ended = None
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append((time.time(), line.rstrip()))
        self.process.wait()
        self.ended = time.time()

    def wait(self):
        """The exit code, and the moment of the end."""
        self.reader.join(PATIENCE)
        if self.ended is None:
            raise RuntimeError("a host did not end: " + self.last_lines())
        return self.process.returncode, self.ended

    def first_line(self, words, after):
        return next((moment for moment, line in self.lines if moment >= after and words in line), None)

    def last_lines(self):
        return "\n".join(line for _, line in self.lines[-5:])


class HostsRun(Run):
    """A run over all hosts. Leaving the context kills it."""

    def __init__(self, arguments, networks, folder, program=(), options=(), shards=4):
        self.arguments = arguments
        self.shards = shards
        self.program = program  # options of recovery_program
        self.options = options  # of `holdfast run`
        self.networks = networks
        self.folder = folder
        self.size = arguments.hosts * arguments.replicas
        self.generations = {}
        self.journal = []
        self.tails = {}
        self.journal_tail = Tail(os.path.join(folder, "run", "journal.jsonl"))
        self.secret = os.path.join(folder, "secret")
        descriptor = os.open(self.secret, os.O_WRONLY | os.O_CREAT, 0o400)
        os.write(descriptor, secrets.token_bytes(32))
        os.close(descriptor)
        self.hosts = {}
        for host in range(arguments.hosts):
            self.start(host)

    def __exit__(self, *_):
        for host in self.networks.hosts:
            self.networks.kill_all(host)

    @property
    def process(self):
        """The head's, for what waits."""
        return self.hosts[0].process

    def tail_of_output(self):
        return "\n".join(f"host {host}:\n{process.last_lines()}" for host, process in self.hosts.items())

    def start(self, host):
        program = os.path.join(self.arguments.bin, "recovery_program")
        self.hosts[host] = Host(self.networks, host, [
            os.path.join(self.arguments.bin, "holdfast"), "run", "--nnodes", str(self.arguments.hosts),
            "--node-rank", str(host), "--head", f"{self.networks.address(0)}:{PORT}", "--secret", self.secret,
            "--replicas", str(self.arguments.replicas), "--run-dir", os.path.join(self.folder, "run"),
            "--max-restarts", "1000000", "--head-timeout", str(self.arguments.head_timeout), *self.options, "--",
            program, "--folder", self.folder, "--width", str(self.arguments.width),
            "--shards", str(max(self.shards, self.size)),
            "--memory-snapshot-every", str(self.arguments.memory_snapshot_every), *self.program])

    def settled(self):
        """The newest generation, if it has all members and has got further than any before it."""
        newest = self.newest()
        if newest is None or newest.size != self.size or newest.shortest() < SETTLED_STEPS:
            return None
        furthest = max((generation.last_step() for generation in self.generations.values() if generation is not newest),
                       default=0)
        return newest if newest.last_step() >= furthest + SETTLED_STEPS else None

    def wait_until_settled(self):
        return self.wait_until(self.settled, "a run with all hosts that has settled")

    def events(self, name, after):
        return [line for line in self.journal if line["event"] == name and line["time"] >= after]

    def processes_of(self, hosts):
        return {line["pid"] for line in self.journal if line["event"] == "ready" and line.get("host") in hosts}

    def last_commit(self, number, processes):
        """The moment of the last step that one of these processes has committed in this generation."""
        generation = self.generations[number]
        return max(lines[-1][1] for pid, lines in generation.steps.items() if pid in processes)


def lost_steps(generation, step):
    return max(0, generation.last_step() + 1 - step)


def kill_host(run, chance):
    """All of a host that is not the head's."""
    generation = run.wait_until_settled()
    step_seconds = statistics.median(generation.durations())
    time.sleep(chance.uniform(0, 0.2))
    host = chance.choice(run.networks.others(0))
    moment = run.networks.kill_all(host)
    run.hosts[host].wait()
    after = run.wait_until(lambda: next_generation(run, generation.number), "the next generation's first step")
    noticed = run.wait_until(lambda: run.events("host_lost", moment), "host_lost in the journal")[0]["time"]
    step, committed = after.first_step()
    run.start(host)
    return {"step": step_seconds, "noticed": noticed - moment, "next": committed - moment,
            "again": lost_steps(generation, step)}


def cut_host(run, chance):
    """A host in a direction, or the head's, which goes on alone: then all others are on the side that is cut off."""
    generation = run.wait_until_settled()
    step_seconds = statistics.median(generation.durations())
    time.sleep(chance.uniform(0, 0.2))
    host, direction = chance.choice(run.networks.hosts), chance.choice(DIRECTIONS)
    cut_off = run.networks.others(0) if host == 0 else [host]
    moment = time.time()
    run.networks.cut(host, direction)
    try:
        after = run.wait_until(lambda: next_generation(run, generation.number), "the next generation's first step")
        run.wait_until(lambda: all(run.hosts[other].first_line(HEAD_LOST, moment) for other in cut_off),
                       "agents that are cut off to notice it")
    finally:
        run.networks.heal(host, direction)
    healed = time.time()
    ended = max(run.hosts[other].first_line(HEAD_LOST, moment) for other in cut_off)
    whole = run.wait_until(run.settled, "all hosts to be back")
    step, committed = after.first_step()
    processes = run.processes_of(cut_off)
    return {"host": host, "direction": direction, "step": step_seconds,
            "noticed": max(line["time"] for line in run.events("host_lost", moment)) - moment,
            "next": committed - moment, "again": lost_steps(generation, step),
            "after_commit": committed - run.last_commit(generation.number, processes),
            "after_end": committed - ended, "back": whole.first_step()[1] - healed}


def cut_between(run, chance):
    """Two hosts that both reach the head's. One of them goes, and comes back with the connection."""
    generation = run.wait_until_settled()
    step_seconds = statistics.median(generation.durations())
    time.sleep(chance.uniform(0, 0.2))
    one, other = sorted(chance.sample(run.networks.others(0), 2))
    moment = time.time()
    run.networks.cut_between(one, other)
    try:
        after = run.wait_until(lambda: next_generation(run, generation.number), "the next generation's first step")
    finally:
        run.networks.heal_between(one, other)
    healed = time.time()
    whole = run.wait_until(run.settled, "all hosts to be back")
    step, committed = after.first_step()
    return {"step": step_seconds, "left": after.size, "next": committed - moment,
            "again": lost_steps(generation, step), "back": whole.first_step()[1] - healed}


def kill_head(run, chance):
    """All of the head's host, in a run of its own; then all hosts are started again."""
    run.wait_until_settled()
    time.sleep(chance.uniform(0, 0.2))
    moment = run.networks.kill_all(0)
    ends = [run.hosts[host].wait() for host in run.networks.others(0)]
    run.look()
    survivors = run.processes_of(run.networks.others(0))
    newest = max(lines[-1][0] for generation in run.generations.values()
                 for pid, lines in generation.steps.items() if pid in survivors)
    saved = sorted(name for name in os.listdir(os.path.join(run.folder, "run"))
                   if re.fullmatch(r"savepoint-\d+\.h5", name))
    if not saved:
        raise RuntimeError("no savepoint is left: " + run.tail_of_output())
    verified = subprocess.run([os.path.join(run.arguments.bin, "holdfast"), "verify",
                               os.path.join(run.folder, "run", saved[-1])], capture_output=True, check=False)
    if verified.returncode != 0:
        raise RuntimeError(f"{saved[-1]} is not whole: {verified.stdout.decode()}")
    step = int(re.search(r"\d+", saved[-1]).group())
    again = time.time()
    for host in run.networks.hosts:
        run.start(host)
    resumed = run.wait_until(lambda: run.events("resumed", again), "a run that has resumed")[0]["details"]["step"]
    run.wait_until(lambda: any(generation.first_step() and generation.first_step()[1] > again
                               for generation in run.generations.values()), "a step of the run that has resumed")
    return {"codes": [code for code, _ in ends], "exit": max(end for _, end in ends) - moment,
            "unsaved": newest - step, "resumed_earlier": step - resumed}


def with_options(arguments, **changes):
    return argparse.Namespace(**{**vars(arguments), **changes})


def step_times(arguments, networks, hosts, replicas):
    """Seconds of LeNet-5's steps on so many hosts and replicas, as one process has committed them.

    Each replica has one shard. It would compute two at once on the cores of a host of its own, and the hosts share theirs
    here.
    """
    options = with_options(arguments, hosts=hosts, replicas=replicas)
    with tempfile.TemporaryDirectory(prefix="holdfast-hosts-", dir=arguments.folder) as folder:
        with HostsRun(options, networks, folder, ["--model", "lenet5", "--batch", "128"], shards=2) as run:
            generation = run.wait_until(
                lambda: (newest := run.newest()) and newest.size == run.size
                and newest.shortest() > WARM_STEPS + MEASURED_STEPS and newest, "steps of LeNet-5")
            moments = [moment for _, moment in next(iter(generation.steps.values()))][WARM_STEPS:]
    return [after - before for before, after in zip(moments, moments[1:])][:MEASURED_STEPS]


def compare_steps(arguments, networks, number):
    """One host with two replicas and two hosts with one each, in the other order each time."""
    ways = [("one", 1, 2), ("two", 2, 1)]
    times = {name: statistics.median(step_times(arguments, networks, hosts, replicas))
             for name, hosts, replicas in (ways if number % 2 else ways[::-1])}
    return {"one_host": times["one"], "two_hosts": times["two"], "more": times["two"] - times["one"]}


def give_state_to_new_host(run):
    """Host 1 is killed and comes back, without a state."""
    generation = run.wait_until_settled()
    run.networks.kill_all(1)
    run.hosts[1].wait()
    alone = run.wait_until(lambda: next_generation(run, generation.number), "the next generation's first step")
    run.start(1)
    after = run.wait_until(lambda: next_generation(run, alone.number), "the first step with the new host")
    opened = next(line["time"] for line in run.journal for action in line.get("actions", [])
                  if action["action"] == "open_generation" and action["generation"] == after.number)
    committed = after.first_step()[1]
    run.wait_until(lambda: after.shortest() > SETTLED_STEPS, "more steps")
    return {"step": statistics.median(after.durations()), "opened_to_step": committed - opened,
            "pause": committed - alone.last_moment()}


def cancel_collectives(arguments, networks):
    """The ranks of two hosts are threads of one program here, with sockets between two networks."""
    namespaces = ",".join(f"/proc/{os.getpid()}/fd/{namespace}" for namespace in networks.namespaces[:2])
    result = subprocess.run([os.path.join(arguments.bin, "bench_reduction"), "--hosts", "2", "--cancels",
                             str(arguments.cancels), "--namespaces", namespaces, "--addresses", networks.address(0)],
                            capture_output=True, text=True, check=False)
    return result.returncode == 0, (result.stdout + result.stderr).strip()


def repeat(name, times, act, results, failures):
    """What cannot be measured is told at the end, and is not the end of the rest."""
    try:
        for number in range(1, times + 1):
            results.append(act(number))
            figures = ", ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}"
                                for key, value in results[-1].items())
            print(f"{name} {number} of {times}: {figures}", file=sys.stderr, flush=True)
    except RuntimeError as error:
        failures.append(f"{name} {len(results) + 1} of {times} was not measured, nor were later ones: {error}")
        print(failures[-1], file=sys.stderr, flush=True)


def kill_torch(arguments, networks, chance):
    with tempfile.TemporaryDirectory(prefix="holdfast-hosts-", dir=arguments.folder) as folder:
        with TorchRun(arguments, networks, folder) as run:
            return kill_host_of_torch(run, chance, SETTLED_STEPS)


def kill_beside_torch(arguments, networks, chance):
    """The same model on the same hosts."""
    options = with_options(arguments, hosts=2, replicas=1, width=2048)
    with tempfile.TemporaryDirectory(prefix="holdfast-hosts-", dir=arguments.folder) as folder:
        with HostsRun(options, networks, folder) as run:
            generation = run.wait_until_settled()
            step_seconds = statistics.median(generation.durations())
            time.sleep(chance.uniform(0, 0.2))
            moment = networks.kill_all(1)
            after = run.wait_until(lambda: next_generation(run, generation.number), "the next generation's first step")
            step, committed = after.first_step()
            return {"step": step_seconds, "next": committed - moment, "again": lost_steps(generation, step)}


def kill_torch_and_ours(arguments, networks, chance):
    return {"torchrun": kill_torch(arguments, networks, chance),
            "holdfast": kill_beside_torch(arguments, networks, chance)}


def measure(arguments, networks, figures, failures):
    def in_one_run(name, times, act, options=()):
        if not times:
            return
        chance = random.Random(f"{arguments.seed} {name}")
        with tempfile.TemporaryDirectory(prefix="holdfast-hosts-", dir=arguments.folder) as folder:
            with HostsRun(arguments, networks, folder, options=options) as run:
                repeat(name, times, lambda _: act(run, chance), figures.setdefault(name, []), failures)

    def each_in_a_run(name, times, act):
        chance = random.Random(f"{arguments.seed} {name}")

        def act_once(_):
            with tempfile.TemporaryDirectory(prefix="holdfast-hosts-", dir=arguments.folder) as folder:
                with HostsRun(arguments, networks, folder) as run:
                    return act(run, chance)
        repeat(name, times, act_once, figures.setdefault(name, []), failures)

    if arguments.step_turns:
        repeat("step", arguments.step_turns, lambda number: compare_steps(arguments, networks, number),
               figures.setdefault("step", []), failures)
    if arguments.states:
        options = with_options(arguments, hosts=2, replicas=1, width=STATE_WIDTH)
        with tempfile.TemporaryDirectory(prefix="holdfast-hosts-", dir=arguments.folder) as folder:
            with HostsRun(options, networks, folder) as run:
                repeat("state", arguments.states, lambda _: give_state_to_new_host(run),
                       figures.setdefault("state", []), failures)
    if arguments.torch_deaths:
        chance = random.Random(f"{arguments.seed} torchrun")
        repeat("torchrun", arguments.torch_deaths, lambda _: kill_torch_and_ours(arguments, networks, chance),
               figures.setdefault("torchrun", []), failures)
    if arguments.cancels:
        is_kept, figures["cancels"] = cancel_collectives(arguments, networks)
        if not is_kept:
            failures.append("cancels: " + figures["cancels"])
    in_one_run("death", arguments.deaths, kill_host)
    # A host that went is tried after this time, and each further time after twice as long.
    in_one_run("cut between two", arguments.cuts_between, cut_between, ("--place-rest", str(PLACE_REST)))
    head_timeout, arguments.head_timeout = arguments.head_timeout, PATIENCE  # a cut does not end the run
    in_one_run("cut", arguments.cuts, cut_host)
    arguments.head_timeout = head_timeout
    each_in_a_run("death of the head", arguments.head_deaths, kill_head)


def cell(values, worst=max):
    values = list(values)
    return f"{percentile(values, 0.5):.3f} / {percentile(values, 0.99):.3f} / {worst(values):.3f}"


def print_deaths(deaths):
    print(f"\nAll of a host is killed, {len(deaths)} times. Seconds from the death, p50 / p99 / worst; steps of "
          f"{statistics.median(d['step'] for d in deaths):.3f} s:\n")
    print("| detection (host_lost) | recovery (the others' next step) | recovery less one step | steps computed again |")
    print("| --- | --- | --- | ---: |")
    print(f"| {cell(d['noticed'] for d in deaths)} | {cell(d['next'] for d in deaths)} "
          f"| {cell(d['next'] - d['step'] for d in deaths)} | {sum(d['again'] for d in deaths)} |")


def print_cuts(cuts):
    print(f"\nA host is cut off without a word, {len(cuts)} times. Seconds from the cut, p50 / p99 / worst. The worst "
          "margin is the smallest; an overlap would be negative:\n")
    print("| direction | cuts | detection (host_lost) | recovery (the others' next step) | margin to the last step of the "
          "side that was cut off | margin to the end of its generation | all hosts together, after healing "
          "| steps computed again |")
    print("| --- | ---: |" + " --- |" * 5 + " ---: |")
    for direction in (*DIRECTIONS, "all"):
        some = [c for c in cuts if direction in (c["direction"], "all")]
        if some:
            print(f"| {direction} | {len(some)} | {cell(c['noticed'] for c in some)} | {cell(c['next'] for c in some)} "
                  f"| {cell((c['after_commit'] for c in some), min)} | {cell((c['after_end'] for c in some), min)} "
                  f"| {cell(c['back'] for c in some)} | {sum(c['again'] for c in some)} |")
    overlaps = sum(c["after_commit"] <= 0 or c["after_end"] <= 0 for c in cuts)
    print(f"\n{overlaps} overlaps. The end of a generation is the moment at which this program read the agent's line about "
          "it, so these margins are rather too small than too large.")


def print_cuts_between(cuts):
    print(f"\nTwo hosts that both reach the head lose each other, {len(cuts)} times. Seconds, p50 / p99 / worst:\n")
    print("| recovery (the others' next step) | all hosts together, after healing, with --place-rest "
          f"{PLACE_REST}, which doubles each time | steps computed again |")
    print("| --- | --- | ---: |")
    print(f"| {cell(c['next'] for c in cuts)} | {cell(c['back'] for c in cuts)} | {sum(c['again'] for c in cuts)} |")


def print_head_deaths(deaths, head_timeout):
    print(f"\nAll of the head's host is killed, {len(deaths)} times; the others wait {head_timeout} s for it. Seconds, p50 "
          "/ p99 / worst:\n")
    print("| until all others have ended | with 75 | steps that the savepoint lacks | resumed there |")
    print("| --- | ---: | ---: | ---: |")
    codes = [code for d in deaths for code in d["codes"]]
    unsaved = [d["unsaved"] for d in deaths]
    print(f"| {cell(d['exit'] for d in deaths)} | {codes.count(STOPPED)} of {len(codes)} "
          f"| {statistics.median(unsaved):.0f} (at most {max(unsaved)}) "
          f"| {sum(d['resumed_earlier'] == 0 for d in deaths)} of {len(deaths)} |")


def print_steps(steps):
    print(f"\nA step of LeNet-5 (batch 128, Adam) on two replicas, {len(steps)} turns of {MEASURED_STEPS} steps each. "
          "Milliseconds, the medians of the turns, and the median turn:\n")
    print("| one host with both | two hosts with one each | more |")
    print("| --- | --- | --- |")
    names = ("one_host", "two_hosts", "more")
    for turn in steps:
        print("| " + " | ".join(f"{1000 * turn[name]:.3f}" for name in names) + " |")
    print("| " + " | ".join(f"**{1000 * statistics.median(turn[name] for turn in steps):.3f}**" for name in names) + " |")


def print_states(states):
    print(f"\nA host of two is killed and comes back without a state, {len(states)} times; width {STATE_WIDTH}, "
          f"{STATE_MIB} MiB of state; steps of {statistics.median(s['step'] for s in states):.3f} s. Seconds, p50 / p99 "
          "/ worst:\n")
    print("| from the opening of the generation to its first step | less one step | pause of the other host |")
    print("| --- | --- | --- |")
    print(f"| {cell(s['opened_to_step'] for s in states)} | {cell(s['opened_to_step'] - s['step'] for s in states)} "
          f"| {cell(s['pause'] for s in states)} |")


def print_torch(pairs):
    print("\nAll of one of two hosts is killed, in a run of its own each time, in turns. Seconds, p50 / p99 / worst:\n")
    print("| | deaths | a step | until the other host's next step | steps computed again |")
    print("| --- | ---: | --- | --- | ---: |")
    for name, title in (("holdfast", "`holdfast run`"), ("torchrun", "torchrun, restart from a checkpoint")):
        deaths = [pair[name] for pair in pairs]
        print(f"| {title} | {len(deaths)} | {statistics.median(d['step'] for d in deaths):.3f} "
              f"| {cell(d['next'] for d in deaths)} | {sum(d['again'] for d in deaths)} |")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/hosts", description=__doc__)
    parser.add_argument("--bin", required=True, help="the folder with holdfast and recovery_program")
    parser.add_argument("--deaths", type=int, default=100, help="of hosts other than the head's; 0: none")
    parser.add_argument("--cuts", type=int, default=50, help="of random hosts, in random directions")
    parser.add_argument("--cuts-between", type=int, default=0,
                        help="between two hosts that both reach the head's; needs three")
    parser.add_argument("--head-deaths", type=int, default=20, help="of the head's host, each in a run of its own")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--replicas", type=int, default=1, help="of each host")
    parser.add_argument("--width", type=int, default=256, help="of the model; 256: 8 MB of state, 2048: 100 MB")
    parser.add_argument("--memory-snapshot-every", type=int, default=0,
                        help="steps between copies of the state in the memory of each host; 0: as often as it costs "
                             "almost nothing")
    parser.add_argument("--head-timeout", type=float, default=3, help="seconds that others wait for a head that was killed")
    parser.add_argument("--step-turns", type=int, default=0,
                        help="comparisons of LeNet-5's step on one host with two replicas and on two hosts")
    parser.add_argument("--states", type=int, default=0, help="states of 256 MiB for a host that comes back without one")
    parser.add_argument("--cancels", type=int, default=0, help="collectives between two hosts that are cancelled")
    parser.add_argument("--torch-deaths", type=int, default=0,
                        help="of one of two hosts under torchrun, and as many under holdfast run; needs --torch")
    parser.add_argument("--torch", help="a Python that has PyTorch")
    parser.add_argument("--torch-rendezvous", default="",
                        help="for torchrun's --rdzv-conf, as last_call_timeout=1; empty: its defaults")
    parser.add_argument("--seed", type=int, default=1, help="of which host it strikes, and when")
    parser.add_argument("--folder", help="for runs; default: the system's for temporary files")
    parser.add_argument("--json", help="file for all figures")
    return parser.parse_args()


def load():
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def main():
    # On SIGTERM, too, runs must end and networks must be removed.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    arguments = parse_arguments()
    refused = why_not()
    if refused:
        sys.exit(f"bench/hosts: nothing was measured: {refused}")
    if arguments.hosts < 2:
        sys.exit("bench/hosts: --hosts must be at least 2")
    if arguments.cuts_between and arguments.hosts < 3:
        sys.exit("bench/hosts: --cuts-between needs three hosts")
    if arguments.torch_deaths and not arguments.torch:
        sys.exit("bench/hosts: --torch-deaths needs --torch")
    figures, failures = {}, []
    load_before = load()
    with HostNetworks(arguments.hosts) as networks:
        measure(arguments, networks, figures, failures)
    print(f"{arguments.hosts} hosts with {arguments.replicas} replica(s) each on {os.cpu_count()} cores; load average "
          f"{load_before} before, {load()} after")
    shown_by = {"step": print_steps, "state": print_states, "torchrun": print_torch,
                "cancels": lambda table: print("\n" + table), "death": print_deaths, "cut": print_cuts,
                "cut between two": print_cuts_between,
                "death of the head": lambda deaths: print_head_deaths(deaths, arguments.head_timeout)}
    for name, show in shown_by.items():
        if figures.get(name):
            show(figures[name])
    for failure in failures:
        print(f"\nNOT MEASURED: {failure}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"figures": figures, "failures": failures, "load": load_before}, file, indent=1)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
