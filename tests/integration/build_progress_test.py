"""What scripts/build shows of a build by Ninja, on builds that compile nothing."""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS / "building"))

import progress  # noqa: E402

PROGRAM = [sys.executable, str(SCRIPTS / "building" / "progress.py")]
STATUS_OF_NINJA = re.compile(r"@step|\[\d+/\d+\]|Entering directory")


class FakeClock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def step(done, total, target="sdk/CMakeFiles/holdfast_sdk.dir/Unity/unity_3_cxx.cxx.o"):
    return f"@step {done} {total} Building CXX object {target}\n".encode()


class Elsewhere(unittest.TestCase):
    """No terminal: a log, a pipe."""

    def setUp(self):
        self.clock = FakeClock()
        self.output = io.BytesIO()
        self.progress = progress.Progress(self.output, False, lambda: 80, self.clock)

    def lines(self):
        return self.output.getvalue().decode().splitlines()

    def test_writes_a_line_each_half_minute_and_one_at_the_end(self):
        for done in range(1, 61):
            self.clock.seconds = 2.0 * done
            self.progress.take(step(done, 60))
        self.progress.finish(0)

        self.assertEqual(
            self.lines(),
            [
                "build: 1 of 60 steps, 2 s",
                "build: 16 of 60 steps, 32 s, about 1 min left",
                "build: 31 of 60 steps, 1 min 2 s, about 1 min left",
                "build: 46 of 60 steps, 1 min 32 s, less than a minute left",
                "build: done, 60 steps in 2 min 0 s",
            ],
        )

    def test_passes_on_what_a_compiler_says_byte_for_byte(self):
        said = ["FAILED: a.o \n".encode(), "a.cpp:1:2: error: ‘x’ was not declared\n".encode(), b"\xff\xfe no UTF-8\n"]

        self.progress.take(step(1, 2))
        for line in said:
            self.progress.take(line)
        self.progress.finish(1)

        self.assertIn(b"".join(said), self.output.getvalue())
        self.assertEqual(self.lines_after(b"UTF-8\n"), "build: FAILED after 1 of 2 steps; what is wrong stands above\n")

    def lines_after(self, mark):
        return self.output.getvalue().partition(mark)[2].decode()

    def test_says_that_there_was_nothing_to_do(self):
        self.progress.take(b"@step 0 2 Re-checking globbed directories...\n")
        self.progress.take(b"ninja: Entering directory `build/release'\n")
        self.progress.take(b"ninja: no work to do.\n")
        self.progress.finish(0)

        self.assertEqual(self.lines(), ["build: nothing to do"])


class InATerminal(unittest.TestCase):
    def test_draws_one_line_anew_that_fits_and_makes_room_for_errors(self):
        output = io.BytesIO()
        drawn = progress.Progress(output, True, lambda: 40, FakeClock())

        drawn.take(step(1, 60))
        drawn.take(step(2, 60, "examples/CMakeFiles/digits.dir/digits/main.cpp.o"))
        drawn.take(b"main.cpp:1: error\n")

        self.assertEqual(
            output.getvalue().decode(),
            "\rbuild: 1 of 60 steps, 0 s: sdk\033[K"
            "\rbuild: 2 of 60 steps, 0 s: examples/dig\033[K"
            "\r\033[Kmain.cpp:1: error\n",
        )


@unittest.skipUnless(shutil.which("ninja"), "ninja is missing")
class RealBuilds(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        Path(self.folder.name, "build.ninja").write_text(
            "rule touch\n  command = touch $out\n  description = Building CXX object $out\n"
            "rule fail\n  command = echo 'a.cpp:1: error: bad' >&2; exit 1\n  description = Building CXX object $out\n"
            "build a.o: touch\nbuild b.o: touch\nbuild bad.o: fail\n"
        )

    def build(self, *targets):
        return subprocess.run(
            [*PROGRAM, "ninja", "-C", self.folder.name, *targets], capture_output=True, text=True, timeout=60
        )

    def test_end_with_a_line_and_with_the_code_of_the_build(self):
        first, second, failing = self.build("a.o", "b.o"), self.build("a.o", "b.o"), self.build("bad.o")

        self.assertEqual((first.returncode, first.stdout.splitlines()[-1][:20]), (0, "build: done, 2 steps"))
        self.assertEqual((second.returncode, second.stdout), (0, "build: nothing to do\n"))
        self.assertEqual(failing.returncode, 1)
        self.assertIn("\na.cpp:1: error: bad\n", failing.stdout)
        for run in (first, second, failing):
            self.assertNotRegex(run.stdout, STATUS_OF_NINJA)

    def test_move_one_line_in_a_terminal(self):
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [*PROGRAM, "ninja", "-C", self.folder.name, "a.o", "b.o"],
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        ) as process:
            os.close(theirs)
            seen = b""
            try:
                while data := os.read(ours, 4096):
                    seen += data
            except OSError:  # a terminal ends so when nobody writes to it any more
                pass
            process.wait(60)
        os.close(ours)

        self.assertRegex(seen, rb"\rbuild: 2 of 2 steps, \d+ s: [ab]\x1b\[K")
        self.assertEqual(seen.count(b"\n"), 1)
        self.assertNotRegex(seen.decode(), STATUS_OF_NINJA)

    def test_a_signal_that_ends_the_build_is_its_code(self):
        run = subprocess.run([*PROGRAM, "sh", "-c", "kill -9 $$"], capture_output=True, text=True, timeout=60)

        self.assertEqual((run.returncode, run.stdout), (137, "build: FAILED\n"))

    def test_nobody_who_reads_ends_the_build_without_a_complaint(self):
        run = subprocess.run(
            ["sh", "-c", '"$@" | true', "sh", *PROGRAM, "yes"], capture_output=True, text=True, timeout=60
        )

        self.assertEqual(run.stderr, "")


if __name__ == "__main__":
    unittest.main()
