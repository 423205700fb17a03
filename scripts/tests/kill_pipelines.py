#!/usr/bin/env python3
"""Kills training at drawn moments, on 24 pipelines of data with all callbacks but ProgressLine, and compares
what is left with the undisturbed run: weights, rows, curves and the last savepoint, which holds the state of callbacks.

    scripts/tests/kill_pipelines.py [--kills 2000] [--seed 1] [--build build/release] [--pipelines 0,1,2]

Each run of a pipeline dies several times: a replica drawn at random gets SIGKILL, or in one of eight cases all processes
of the run with the watchdog, and then the same command starts again. The moments are drawn between the start of a run
and the time that the undisturbed one took; each further death follows within a third of that time. Kills that found nothing left to kill do not count.
The last line counts kills and differences. Exit code: 0 all equal, 1 not.
"""

import argparse
import csv
import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PIPELINES = 24
KILLS_PER_RUN = 5
LIMIT = 300


def fields(data):
    """The fields of a message of Protocol Buffers: (number, value) in their order."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            yield key >> 3, data[at : at + size]
            at += size


def events(path):
    """The whole records of an event file, as fields by number; a kill may have cut off the last one."""
    data = path.read_bytes()
    at = 0
    while at + 12 <= len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        if at + 16 + size > len(data):
            return
        yield dict(fields(data[at + 12 : at + 12 + size]))
        at += 16 + size


STEP, SUMMARY, SESSION = 2, 5, 7


def curves(folder):
    """What TensorBoard shows: a record that a session starts takes back the points from its step on."""
    shown = {}
    for path in sorted(folder.rglob("events.out.tfevents.*")):
        for event in events(path):
            step = event.get(STEP, 0)
            if SESSION in event:
                shown = {key: summary for key, summary in shown.items() if key[0] != path.parent or key[1] < step}
            elif SUMMARY in event:
                shown[path.parent, step] = event[SUMMARY]
    return sorted((str(where.relative_to(folder)), step, summary) for (where, step), summary in shown.items())


def left_by(run):
    savepoints = sorted(run.glob("*.h5"))
    return {
        "weights": json.loads((run / "results.json").read_text())["weights_digest"],
        "rows": list(csv.reader((run / "log.csv").open())),
        "curves": curves(run),
        "last savepoint": hashlib.sha256(savepoints[-1].read_bytes()).hexdigest() if savepoints else "none",
    }


def command(arguments, folder, pipeline, replicas):
    program = str(Path(arguments.build) / "bin/pipelines_program")
    return [program, "--run-dir", str(folder / "run"), "--data", str(arguments.data), "--pipeline", str(pipeline),
            "--replicas", str(replicas)]


def replicas_of(run):
    """The processes that have the run directory in their command or environment, but for the watchdog itself."""
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    try:
        return [int(child) for child in children.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def disturbed(arguments, draws, folder, pipeline, duration, kills):
    """Runs a pipeline to its end with deaths on the way. Returns how many there were."""
    done = 0
    words = command(arguments, folder, pipeline, replicas=2)
    deadline = time.monotonic() + LIMIT
    log = (folder / "log").open("w")
    while True:
        run = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        restart = False
        while done < kills and run.poll() is None:
            try:
                run.wait(draws.uniform(0, duration if done == 0 else duration / 3))
            except subprocess.TimeoutExpired:
                children = replicas_of(run)
                if draws.randrange(8) == 0:
                    os.killpg(run.pid, signal.SIGKILL)
                    for child in children:
                        kill(child)
                    restart = True
                    done += 1
                elif children:
                    done += kill(draws.choice(children))
        try:
            code = run.wait(max(1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            raise SystemExit(f"pipeline {pipeline}: the run did not end within {LIMIT} s; {folder}")
        if code == 0:
            return done
        if not restart:
            raise SystemExit(f"pipeline {pipeline}: the run ended with {code}; {folder}/log says why")


def kill(process):
    try:
        os.kill(process, signal.SIGKILL)
        return 1
    except ProcessLookupError:
        return 0


def undisturbed(arguments, folder, pipeline):
    begin = time.monotonic()
    subprocess.run(command(arguments, folder, pipeline, replicas=1), check=True, capture_output=True, timeout=LIMIT)
    return left_by(folder / "run"), time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--pipelines", default=",".join(map(str, range(PIPELINES))))
    arguments = parser.parse_args()
    draws = random.Random(arguments.seed)
    pipelines = [int(number) for number in arguments.pipelines.split(",")]
    work = Path(tempfile.mkdtemp(prefix="kill_pipelines."))
    arguments.data = work / "data"
    subprocess.run([str(Path(arguments.build) / "bin/pipelines_program"), "--make", str(arguments.data)], check=True)
    kills = runs = differences = 0
    for index, pipeline in enumerate(pipelines):
        expected, duration = undisturbed(arguments, work / f"{pipeline}", pipeline)
        wanted = (index + 1) * arguments.kills // len(pipelines)
        before = kills
        while kills < wanted:
            folder = work / f"{pipeline}.{runs}"
            folder.mkdir()
            kills += disturbed(arguments, draws, folder, pipeline, duration, min(KILLS_PER_RUN, wanted - kills))
            runs += 1
            found = left_by(folder / "run")
            wrong = [part for part in expected if found[part] != expected[part]]
            if wrong:
                differences += 1
                print(f"pipeline {pipeline}: {', '.join(wrong)} differ; {folder}", flush=True)
            else:
                shutil.rmtree(folder)
        print(f"pipeline {pipeline}: {kills - before} kills, {len(expected['rows']) - 1} rows, "
              f"{len(expected['curves'])} points, {expected['weights'][:16]}", flush=True)
    print(f"{kills} kills in {runs} runs of {len(pipelines)} pipelines, {differences} runs that differ")
    if differences == 0:
        shutil.rmtree(work)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
