"""A program that makes steps when it is told to: its FIFOs, its turns, its end."""

import json
import os
import select
import shutil
import subprocess
import time


class Failed(Exception):
    """What a contender, or a program beside it, could not do."""


class Contender:
    """`command` with `--turns PREFIX`, run for as long as the context lasts, in a folder that goes with it."""

    def __init__(self, folder, log, command, patience):
        self.folder = folder
        self.log_path = log
        self.command = [str(word) for word in command] + ["--turns", str(folder / "turns")]
        self.patience = patience  # seconds
        self.turns = 0

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        # Open for both at this end: then opening waits for nobody, and the other end sees when this one is gone.
        self.ask, self.told = (self.make_fifo(name) for name in ("turns.ask", "turns.told"))
        self.rest = b""
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

    def turn(self, warm, steps, way=""):
        """What is told of so many steps, of which the warm ones before do not count."""
        self.turns += 1
        os.write(self.ask, f"{self.turns} {warm} {steps} {way}\n".encode())
        until = time.monotonic() + self.patience
        while True:
            told = json.loads(self.next_line(until, warm + steps))
            # One that came too late answers an earlier turn.
            if told.pop("turn") == self.turns:
                return told

    def next_line(self, until, steps):
        while b"\n" not in self.rest:
            if select.select([self.told], [], [], 0.2)[0]:
                self.rest += os.read(self.told, 1 << 16)
            elif self.process.poll() is not None:
                raise Failed(f"{self.command[0]} ended with code {self.process.returncode}: {self.last_words()}")
            elif time.monotonic() > until:
                raise Failed(f"{self.command[0]} took more than {self.patience:.0f} s for {steps} steps")
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def last_words(self):
        lines = self.log_path.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"

    def close(self):
        for descriptor in (self.ask, self.told):
            os.close(descriptor)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *failure):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.close()
