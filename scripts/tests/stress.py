#!/usr/bin/env python3
"""Repeats test programs while as many busy loops run as this machine has cores. A test that depends on timing fails
here sooner or later. scripts/test --stress N builds the programs and calls this.

    scripts/tests/stress.py N [--only REGEX] [--build FOLDER] [--loops N]

Programs with label unit run N times; all others (integration, resilience with the sample of the matrix of faults,
interop) run three tenths as often, at least once. Tests with label extra are left out, as in scripts/test. One program
runs at a time, and all run once before any runs again. --only takes the tests whose name or label matches.

CTest starts each program, with its time limit and environment. FOLDER/stress keeps the output of runs that failed.
The table at the end has the runs, failures and skips of each program. Exit code: 0 no run failed, 1 a run failed,
2 there was nothing to run.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import results

# Ends when this process ends, for whatever reason.
BUSY_LOOP = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1000000): pass
"""


@dataclass
class Program:
    name: str
    runs_wanted: int
    runs: int = 0
    failures: int = 0
    longest: float = 0
    skipped: set = field(default_factory=set)
    failed_tests: collections.Counter = field(default_factory=collections.Counter)


def runs_of(labels, repetitions):
    return repetitions if "unit" in labels else max(1, -(-3 * repetitions // 10))


def listed(build, repetitions, only):
    told = subprocess.run(
        ["ctest", "--test-dir", str(build), "--label-exclude", "^extra$", "--show-only=json-v1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    programs = []
    for test in json.loads(told)["tests"]:
        labels = next((one["value"] for one in test.get("properties", []) if one["name"] == "LABELS"), [])
        if only is None or any(re.search(only, text) for text in [test["name"], *labels]):
            programs.append(Program(test["name"], runs_of(labels, repetitions)))
    return programs


@contextlib.contextmanager
def busy_loops(count):
    command = [sys.executable, "-c", BUSY_LOOP, str(os.getpid())]
    loops = []
    try:
        for _ in range(count):
            loops.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


class Ended(Exception):
    """A signal asked this script to end."""


# The signal, once one has arrived. A handler that raises could do so between the start of a process and the line that
# remembers it; and Python may miss a signal that arrives just before it begins to wait. So waits are short, and look.
signal_received = None


def remember_signal(number, _frame):
    global signal_received
    signal_received = number


def output_of(process):
    """What the process printed, once it has ended. Ends it first if a signal has arrived."""
    while True:
        try:
            return process.communicate(timeout=0.2)[0]
        except subprocess.TimeoutExpired:
            if signal_received is None:
                continue
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise Ended


def run_once(program, build, out):
    """One run by CTest; its XML files and, if it failed, its output stay in `out`."""
    number = program.runs + 1
    xml = out / f"{program.name}-{number}"
    xml.mkdir()
    begun = time.monotonic()
    process = subprocess.Popen(
        ["ctest", "--test-dir", str(build), "-R", f"^{re.escape(program.name)}$", "--output-on-failure"]
        + ["--no-tests=error", "--output-junit", str(xml / "ctest.xml")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "GTEST_OUTPUT": f"xml:{xml}/", "HOLDFAST_TEST_RESULTS": str(xml)},
    )
    output = output_of(process)
    program.runs = number
    program.longest = max(program.longest, time.monotonic() - begun)
    for file in sorted(xml.glob("*.xml")):
        for name, why, has_failed in results.cases_in(file):
            if why is not None:
                program.skipped.add((name, why))
            if has_failed and file.stem != "ctest":
                program.failed_tests[name] += 1
    if process.returncode != 0:
        program.failures += 1
        (out / f"{program.name}-{number}.log").write_bytes(output)
    shutil.rmtree(xml)
    return process.returncode == 0


def table(programs):
    width = max(len(program.name) for program in programs)
    lines = [f"{'program':<{width}}  runs  failures  skipped  longest"]
    for program in programs:
        lines.append(
            f"{program.name:<{width}}  {program.runs:>4}  {program.failures:>8}  {len(program.skipped):>7}"
            f"  {program.longest:>6.1f}s"
        )
        lines += [f"{'':<{width}}    failed {count} times: {test}" for test, count in program.failed_tests.items()]
    runs, failures = sum(program.runs for program in programs), sum(program.failures for program in programs)
    lines.append(f"{'all':<{width}}  {runs:>4}  {failures:>8}")
    reasons = sorted({(program.name, *skip) for program in programs for skip in program.skipped})
    lines += [f"skipped: {name}: {test}: {why}" for name, test, why in reasons]
    return "\n".join(lines)


def parsed():
    def positive(text):
        number = int(text)
        if number < 1:
            raise argparse.ArgumentTypeError(f"{text} is not at least 1")
        return number

    parser = argparse.ArgumentParser(
        prog="test --stress", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repetitions", metavar="N", type=positive)
    parser.add_argument("--only", metavar="REGEX")
    parser.add_argument("--build", metavar="FOLDER", type=Path, default=Path("build/release"))
    parser.add_argument("--loops", metavar="N", type=int, default=len(os.sched_getaffinity(0)))
    return parser.parse_args()


def main():
    arguments = parsed()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, remember_signal)
    build = arguments.build.resolve()
    programs = listed(build, arguments.repetitions, arguments.only)
    if not programs:
        print("test: there is no test with such a name or label", file=sys.stderr)
        return 2
    out = build / "stress"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    print(f"{len(programs)} programs next to {arguments.loops} busy loops; a run that fails leaves its output in {out}")
    try:
        with busy_loops(arguments.loops):
            for round_number in range(1, max(program.runs_wanted for program in programs) + 1):
                due = [program for program in programs if program.runs < program.runs_wanted]
                print(f"round {round_number}: {len(due)} programs ({time.strftime('%H:%M:%S')})", flush=True)
                for program in due:
                    if signal_received is not None:
                        raise Ended
                    if not run_once(program, build, out):
                        print(f"  {program.name} FAILED: {out}/{program.name}-{program.runs}.log", flush=True)
    finally:
        print(table(programs), flush=True)
    return 1 if any(program.failures for program in programs) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Ended:
        sys.exit(128 + signal_received)
