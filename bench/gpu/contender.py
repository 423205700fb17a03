"""A program that makes steps on request: its FIFOs, its turns, its end."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import time


class Failed(Exception):
    """The failure of a contender, or of a program next to it."""


class Contender:
    """Runs `command` with `--turns PREFIX` while the context lasts, in a folder that is removed with it."""

    # The limit of each: the end by itself, after a request, and after a kill.
    END_SECONDS = 5

    def __init__(self, folder, log, command):
        self.folder = folder
        self.log_path = log
        self.command = [str(word) for word in command] + ["--turns", str(folder / "turns")]
        self.turns = 0

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        # Opened for reading and writing, so that opening does not wait. The other end still sees when this one is gone.
        self.ask, self.told = (self.make_fifo(name) for name in ("turns.ask", "turns.told"))
        self.rest = b""
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self.log = open(self.log_path, "wb")
        try:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT
            )
        except OSError as failure:
            self.close()
            raise Failed(f"{self.command[0]} does not start: {failure}") from failure
        return self

    def make_fifo(self, name):
        path = self.folder / name
        os.mkfifo(path)
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def turn(self, warm, steps, patience, way=""):
        """The report of `steps` steps after the warm ones, which do not count. Waits for at most `patience` seconds."""
        self.turns += 1
        os.write(self.ask, f"{self.turns} {warm} {steps} {way}\n".encode())
        until = time.monotonic() + patience
        while True:
            line = self.next_line(until)
            if line is None:
                raise Failed(f"{self.command[0]} took more than {patience:.0f} s for {warm + steps} steps")
            told = json.loads(line)
            # A report that came too late belongs to an earlier turn.
            if told.pop("turn") == self.turns:
                return told

    def next_line(self, until):
        """The next report; None if there is none by then."""
        while b"\n" not in self.rest:
            if select.select([self.told], [], [], 0.2)[0]:
                self.rest += os.read(self.told, 1 << 16)
            elif self.process.poll() is not None:
                raise Failed(f"{self.command[0]} ended with code {self.process.returncode}: {self.last_words()}")
            elif time.monotonic() > until:
                return None
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def last_words(self):
        lines = self.log_path.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"

    def stop_asking(self):
        """Lets the contender end by itself: closing the FIFO is what ends its wait for the next turn."""
        if self.ask is not None:
            os.close(self.ask)
            self.ask = None

    def close(self):
        self.stop_asking()
        os.close(self.told)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *failure):
        self.stop_asking()
        for end in (self.process.terminate, self.process.kill):
            try:
                self.process.wait(self.END_SECONDS)
                break
            except subprocess.TimeoutExpired:
                end()
        self.process.wait()
        self.close()


@contextlib.contextmanager
def all_of(contenders):
    """Runs contenders by name. All are asked to end before the first is waited for."""
    with contextlib.ExitStack() as stack:
        for contender in contenders.values():
            stack.enter_context(contender)
        stack.callback(lambda: [contender.stop_asking() for contender in contenders.values()])
        yield contenders
