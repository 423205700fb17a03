#!/usr/bin/env python3
"""Kills the examples `residual`, `two_towers`, `custom_layer`, `reversal` and `text` at drawn steps, on 1, 2 and 4
replicas, and compares the report of each run (digest of the weights, results, steps) with that of an undisturbed run on
one replica.

    scripts/tests/kill_examples.py [--kills 20] [--steps 60] [--seed 1] [--build build/release] [EXAMPLE...]

`residual` has batch normalization. `two_towers` has dropout, several inputs and outputs, and samples of weight 0 that
are spread unevenly over the shards. `custom_layer` has a layer of its own. `reversal` has an encoder-decoder with
padding and dropout. `text` has attention and a tied table ("text-gpt"), or recurrent layers ("text-lstm").

Each example gets so many kills on each number of replicas, one a run, at a step, a rank and a point of the step that
are drawn. In one of eight cases the watchdog is killed, and the same command starts again. A kill counts only if the
journal of the run shows it. Exit code: 0 all equal, 1 not.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = {
    "residual": ("residual",),
    "two_towers": ("two_towers",),
    "custom_layer": ("custom_layer",),
    "reversal": ("reversal",),
    "text-gpt": ("text", "--model", "gpt"),
    "text-lstm": ("text", "--model", "lstm"),
}
REPLICAS = (1, 2, 4)
POINTS = ("data", "forward", "backward", "reduce", "before-update", "after-update", "callback")
LIMIT = 300
KILLED = -9


class Run:
    """One run of an example in a folder of its own."""

    def __init__(self, arguments, folder, example, replicas):
        self.folder = folder
        program, *options = EXAMPLES[example]
        self.words = [str(Path(arguments.build) / "bin" / program), *options, "--replicas", str(replicas), "--steps",
                      str(arguments.steps), "--run-dir", str(folder / "run"), "--report", str(folder / "report.json")]
        folder.mkdir()

    def start(self, *options):
        with (self.folder / "log").open("a") as log:
            return subprocess.run([*self.words, *options], stdout=log, stderr=log, timeout=LIMIT).returncode

    def report(self):
        return json.loads((self.folder / "report.json").read_text())

    def deaths(self):
        lines = (self.folder / "run/journal.jsonl").read_text().splitlines()
        # The first start is not a restart.
        return sum(json.loads(line)["event"] in ("restart", "watchdog_started") for line in lines) - 1


def killed(arguments, draws, folder, example, replicas):
    """The report of a run with a death on the way."""
    run = Run(arguments, folder, example, replicas)
    kind = "kill-watchdog" if draws.randrange(8) == 0 else "kill"
    # The points after the last update of a run are those of its end.
    fault = (f"rank={draws.randrange(replicas)},step={draws.randrange(arguments.steps - 1)},fault={kind},"
             f"phase={draws.choice(POINTS)}")
    code = run.start("--inject", fault)
    if kind == "kill-watchdog" and code in (KILLED, 128 - KILLED):
        code = run.start()
    if code != 0:
        raise SystemExit(f"{example} on {replicas} replicas, {fault}: ended with {code}; {folder}/log says why")
    if run.deaths() == 0:
        raise SystemExit(f"{example} on {replicas} replicas, {fault}: nothing was killed; {folder}")
    return fault, run.report()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of each example on each number of replicas")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help=", ".join(EXAMPLES))
    arguments = parser.parse_args()
    draws = random.Random(arguments.seed)
    work = Path(tempfile.mkdtemp(prefix="kill_examples."))
    kills = differences = 0
    for example in arguments.examples or EXAMPLES:
        alone = Run(arguments, work / example, example, 1)
        if alone.start() != 0:
            raise SystemExit(f"{example} failed without a kill; {alone.folder}/log says why")
        expected = alone.report()
        assert expected["steps"] == arguments.steps, expected
        for replicas in REPLICAS:
            for _ in range(arguments.kills):
                folder = work / f"{example}.{kills}"
                fault, found = killed(arguments, draws, folder, example, replicas)
                kills += 1
                if found == expected:
                    shutil.rmtree(folder)
                    continue
                differences += 1
                print(f"{example} on {replicas} replicas, {fault}: {found}, not {expected}; {folder}", flush=True)
            print(f"{example} on {replicas} replicas: {arguments.kills} kills, {expected['weights_digest'][:16]}",
                  flush=True)
    print(f"{kills} kills, {differences} runs that differ")
    if differences == 0:
        shutil.rmtree(work)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
