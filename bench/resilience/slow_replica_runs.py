"""Measures the gain of dealing a slow replica fewer shards; bench/slow_replica starts it.

Both ways take turns, so that a busy moment of the machine hits both. A round of one is a run from its start: it is timed
over as many steps, after those in which the slow replica is found and the shards are dealt anew.
"""

import argparse
import json
import statistics
import sys
import tempfile

from recovery_runs import Run

SHARDS = 6


def has_settled(run, way):
    """Steps of a generation of two: after the deal if shards are dealt, else after the report of the slow replica."""
    newest = run.newest()
    if newest is None or newest.size != 2 or newest.shortest() < 3:
        return None
    name = "dealt" if way == "deal" else "straggler"
    found = [line for line in run.journal if line["event"] == name]
    if not found or newest.number < found[-1]["generation"]:
        return None
    return newest


def seconds_a_step(arguments, way, folder):
    command = [arguments.program, "--folder", folder, "--replicas", "2", "--shards", str(SHARDS),
               "--batch", str(arguments.batch), "--when-slow", way,
               "--inject", f"rank=1,step=1,fault=slow,factor={arguments.factor}"]
    with Run(command, folder) as run:
        settled = run.wait_until(lambda: has_settled(run, way), f"the slow replica in a run with {way}")
        begin = settled.last_step() + 1
        run.wait_until(lambda: settled.shortest() and settled.last_step() > begin + arguments.steps, "the steps to time")
        moments = dict(next(iter(settled.steps.values())))
        dealt = [line.get("shards", []) for line in run.journal if line["event"] == "dealt"]
    return (moments[begin + arguments.steps] - moments[begin]) / arguments.steps, dealt


def parsed():
    parser = argparse.ArgumentParser(prog="bench/slow_replica")
    parser.add_argument("--program", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=384)
    parser.add_argument("--factor", type=float, default=2)
    parser.add_argument("--folder")
    parser.add_argument("--json")
    return parser.parse_args()


def main():
    arguments = parsed()
    seconds = {"report": [], "deal": []}
    for number in range(arguments.rounds):
        for way, times in seconds.items():
            with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                each, dealt = seconds_a_step(arguments, way, folder)
            times.append(each)
            print(f"round {number + 1}, {way}: {each * 1e3:.1f} ms a step, shards dealt {dealt or 'evenly'}", flush=True)
    medians = {way: statistics.median(times) for way, times in seconds.items()}
    ratio = medians["report"] / medians["deal"]
    print(f"steps a second: {1 / medians['report']:.2f} reported, {1 / medians['deal']:.2f} dealt; ratio {ratio:.2f}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"seconds_a_step": seconds, "ratio": ratio}, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
