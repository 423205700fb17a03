"""Runs a build by Ninja and shows its progress, instead of a line for each file.

    python3 scripts/building/progress.py COMMAND...

In a terminal one line is updated; elsewhere a line is printed every half minute. All other output of the command, such
as a compiler's messages, is passed on unchanged. Exit code: the command's, or 128 + the signal that ended it.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

SECONDS_BETWEEN_LINES = 30
# Ninja begins each line with this: steps done, steps in all, and the description of the step.
STATUS = "@step %f %t "
STEP = re.compile(rb"@step (\d+) (\d+) (.*)")
# An estimate from the first seconds would mislead.
FEWEST_STEPS, FEWEST_SECONDS = 5, 10
NOISE = (b"ninja: Entering directory", b"ninja: no work to do.")


def duration(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def subject(description):
    """"sdk" for a batch of that library's sources, "examples/digits/main.cpp" for a single source."""
    path = description.rpartition(" ")[2]
    batch = re.search(r"CMakeFiles/(?:holdfast_)?([^/]*)\.dir/Unity/", path)
    return batch[1] if batch else re.sub(r"CMakeFiles/[^/]*\.dir/|\.o$", "", path)


def left(done, total, seconds):
    """", about 2 min left"; empty while there is no good estimate."""
    if done < FEWEST_STEPS or seconds < FEWEST_SECONDS or done == total:
        return ""
    rest = seconds / done * (total - done)
    return f", about {max(1, round(rest / 60))} min left" if rest > 45 else ", less than a minute left"


class Progress:
    def __init__(self, output, is_terminal, width, now=time.monotonic):
        self.output, self.is_terminal, self.width, self.now = output, is_terminal, width, now
        self.begun = now()
        self.told = None  # when the newest line was written, where it is not a terminal
        self.done = self.total = 0
        self.subject = ""
        self.has_line = False  # the terminal's cursor stands on a line of ours

    def take(self, line):
        """Takes one line that the command printed."""
        step = STEP.fullmatch(line.rstrip(b"\n"))
        if step is None:
            if not line.startswith(NOISE):
                self.pass_on(line)
            return
        description = step[3].decode(errors="replace")
        if description.startswith("Re-"):  # Ninja looks whether CMake must run again, before it counts its steps.
            return
        self.done, self.total, self.subject = int(step[1]), int(step[2]), subject(description)
        self.show()

    def show(self):
        if not self.total:
            return
        seconds = self.now() - self.begun
        if not self.is_terminal:
            if self.told is None or self.now() - self.told >= SECONDS_BETWEEN_LINES:
                self.told = self.now()
                self.write(f"{self.text(seconds)}\n".encode())
            return
        self.write(b"\r" + f"{self.text(seconds)}: {self.subject}"[: self.width() - 1].encode() + b"\033[K")
        self.has_line = True

    def text(self, seconds):
        return f"build: {self.done} of {self.total} steps, {duration(seconds)}{left(self.done, self.total, seconds)}"

    def pass_on(self, line):
        self.clear()
        self.write(line)

    def finish(self, code):
        self.clear()
        if not self.total:
            text = "build: nothing to do" if code == 0 else "build: FAILED"
        elif code == 0:
            text = f"build: done, {self.total} steps in {duration(self.now() - self.begun)}"
        else:
            text = f"build: FAILED after {self.done} of {self.total} steps; what is wrong stands above"
        self.write(text.encode() + b"\n")

    def clear(self):
        if self.has_line:
            self.write(b"\r\033[K")
            self.has_line = False

    def write(self, data):
        self.output.write(data)
        self.output.flush()


def follow(child, progress):
    """Passes on each line as it comes, and updates the time on the terminal's line in between."""
    rest = b""
    while True:
        ready, _, _ = select.select([child.stdout], [], [], 1)
        if not ready:
            progress.show()
            continue
        data = os.read(child.stdout.fileno(), 65536)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            progress.take(line + b"\n")
    if rest:
        progress.take(rest + b"\n")


def main():
    command = sys.argv[1:]
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "NINJA_STATUS": STATUS}
    )
    # Ctrl-C in a terminal reaches Ninja, too. Ninja ends its commands, and says so.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    signal.signal(signal.SIGTERM, lambda number, frame: child.terminate())
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    progress = Progress(sys.stdout.buffer, is_terminal, lambda: shutil.get_terminal_size().columns)
    try:
        follow(child, progress)
        code = child.wait()
        code = code if code >= 0 else 128 - code
        progress.finish(code)
    except BrokenPipeError:
        # The reader is gone. Without this, Python would print an error when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        child.terminate()
        code = child.wait() or 1
    return code


if __name__ == "__main__":
    sys.exit(main())
