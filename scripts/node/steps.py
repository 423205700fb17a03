"""Runs commands under a deadline, one after the other, with one log and a table of how each ended."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

PASSED, FAILED, SKIPPED, CUT_OFF, NOT_RUN = "passed", "FAILED", "SKIPPED", "CUT OFF", "NOT RUN"


@dataclass
class Row:
    name: str
    result: str
    seconds: float = 0
    detail: str = ""


@dataclass
class Clock:
    """The remaining time of a budget."""

    seconds: float
    now: callable = time.monotonic
    begun: float = field(init=False)

    def __post_init__(self):
        self.begun = self.now()

    def left(self):
        return max(0.0, self.begun + self.seconds - self.now())


def run(command, limit, log, environment=None, folder=None):
    """Runs `command` for at most `limit` seconds; its output goes to the open file `log`.

    Returns its exit code, None when it was cut off, its output and the seconds. What it started ends with it.
    """
    begun = time.monotonic()
    log.flush()
    place = os.path.getsize(log.name)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    except OSError as failure:
        log.write(f"{failure}\n".encode())
        log.flush()
        return 127, output_since(log, place), time.monotonic() - begun
    try:
        code = wait(process, limit)
    finally:
        end(process)
    if received:
        sys.exit(128 + received[0])
    return code, output_since(log, place), time.monotonic() - begun


# Signals that asked this program to end. An exception could interrupt the start of a process, so they are kept here.
received = []


def end_with_what_runs():
    """On a signal, the program first ends the processes that it started, since they run in their own sessions."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda told, frame: received.append(told))


def wait(process, limit):
    """The exit code; None when the time limit is over, or this program was asked to end."""
    until = time.monotonic() + limit
    while not received and time.monotonic() < until:
        try:
            return process.wait(min(0.2, max(0, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            pass
    return process.poll()


def end(process):
    """Ends the process's session: first with SIGTERM, so that a program can write its results, then with SIGKILL."""
    for how, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            break
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
    until = time.monotonic() + 2
    while is_anybody_left(process.pid) and time.monotonic() < until:
        time.sleep(0.01)


def is_anybody_left(group):
    """Waits until killed processes are gone."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def output_since(log, place):
    log.flush()
    with open(log.name, "rb") as file:
        file.seek(place)
        return file.read().decode(errors="replace")


def say(text):
    print(text, flush=True)


def table(rows):
    """The rows as lines; the longest name determines the width."""
    width = max([len(row.name) for row in rows] + [4])
    lines = [f"{'test':<{width}}  {'result':<8} {'seconds':>8}"]
    lines += [f"{row.name:<{width}}  {row.result:<8} {row.seconds:>8.1f}  {row.detail}".rstrip() for row in rows]
    return "\n".join(lines)


def exit_code(rows):
    """0 when there are rows and all passed. A command that was skipped, cut off or not run did not pass."""
    return 0 if rows and all(row.result == PASSED for row in rows) else 1


def fail(name, sentence, code):
    print(f"{name}: {sentence}", file=sys.stderr, flush=True)
    sys.exit(code)
