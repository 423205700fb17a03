"""What scripts/test builds, runs, counts and repeats, on test programs that do nothing."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS / "tests"))

import results  # noqa: E402

# As GoogleTest 1.12, pytest and CTest write them.
GOOGLE_TEST = """<testsuites><testsuite name="Idx">
<testcase name="Reads" classname="Idx" status="run" result="completed" />
<testcase name="ReadsMnist" classname="Idx" status="run" result="skipped">
<skipped message="/hf/tests/idx_test.cpp:232&#x0A;HOLDFAST_TEST_DATA names no folder&#x0A;"><![CDATA[]]></skipped></testcase>
<testcase name="Fails" classname="Idx" status="run" result="completed"><failure message="x" type=""></failure></testcase>
</testsuite></testsuites>"""
PYTEST = """<testsuites><testsuite><testcase classname="interop.readers" name="test_h5py">
<skipped type="pytest.skip" message="python3 has no h5py">readers_test.py:103: python3 has no h5py</skipped>
</testcase></testsuite></testsuites>"""
CTEST = """<testsuite><testcase name="unit_data" classname="unit_data" status="run"/>
<testcase name="interop_keras" classname="interop_keras" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
</testsuite>"""


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Results(unittest.TestCase):
    def test_counts_each_test_once_and_says_why_one_was_skipped(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("unit_data", GOOGLE_TEST), ("interop_readers", PYTEST), ("ctest", CTEST)):
                Path(folder, name + ".xml").write_text(text)
            Path(folder, "torn.xml").write_text(GOOGLE_TEST[:100])

            count, skips = results.read([folder])

        self.assertEqual(count, 5)
        self.assertEqual(
            {(skip.program, skip.test, skip.why) for skip in skips},
            {
                ("unit_data", "Idx.ReadsMnist", "HOLDFAST_TEST_DATA names no folder"),
                ("interop_readers", "interop.readers.test_h5py", "python3 has no h5py"),
                ("ctest", "interop_keras", "SKIP_RETURN_CODE=77"),
            },
        )
        *reasons, last = results.summary(count, skips).splitlines()
        self.assertEqual(last, "3 of 5 tests were skipped")
        self.assertIn("skipped: unit_data: Idx.ReadsMnist: HOLDFAST_TEST_DATA names no folder", reasons)

    def test_says_that_none_was_skipped(self):
        self.assertEqual(results.summary(7, []), "0 of 7 tests were skipped")


# Each stub appends how it was called to `calls`.
STUB = """#!/usr/bin/env bash
echo "$(basename "$0") $*" >> {calls}
"""
# Lists two tests, or runs one, which is skipped. Fails where the file `fails` exists.
CTEST_STUB = (
    """#!/usr/bin/env bash
if [[ " $* " == *" -N "* ]]; then echo "  Test  #7: gpu_a"; echo "  Test #12: gpu_b"; echo "Total Tests: 2"; exit 0; fi
"""
    + STUB.partition("\n")[2]
    + """cat > "$HOLDFAST_TEST_RESULTS/unit_a.xml" << END
<testsuite><testcase name="A"><skipped message="no GPU"/></testcase></testsuite>
END
[ ! -e {fails} ]
"""
)


class TheTestCommand(unittest.TestCase):
    """scripts/test itself, in a tree where all that it calls is a stub."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.calls = self.top / "calls"
        for path in ("test", "tests/results.py"):
            (self.top / "scripts" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SCRIPTS / path, self.top / "scripts" / path)
        for path in ("scripts/setup", "scripts/build", "scripts/fuzz", "bin/git", "bin/clang-format", "bin/ctest"):
            stub = self.top / path
            stub.parent.mkdir(exist_ok=True)
            text = CTEST_STUB if path == "bin/ctest" else STUB
            stub.write_text(text.format(calls=self.calls, fails=self.top / "fails"))
            stub.chmod(0o755)

    def run_command(self, *arguments):
        """Exit code, lines of output, and what was called in the end."""
        environment = {**os.environ, "PATH": f"{self.top / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(
            [self.top / "scripts/test", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            env=environment,
        )
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        return done.returncode, done.stdout.splitlines(), calls

    def test_builds_and_runs_what_needs_no_gpu(self):
        code, lines, calls = self.run_command()

        self.assertEqual(code, 0, lines)
        self.assertEqual([call for call in calls if call.startswith(("build", "fuzz"))], ["build release host_tests"])
        (ctest,) = [call for call in calls if call.startswith("ctest")]
        self.assertIn("--test-dir build/release", ctest)
        self.assertTrue(ctest.endswith("--label-exclude ^extra$"), ctest)

    def test_counts_the_skipped_tests_in_its_last_line(self):
        _, lines, _ = self.run_command()

        self.assertRegex(lines[-4], r"^== All tests passed after 0 min \d+ s ")
        self.assertEqual(lines[-2:], ["skipped: unit_a: A: no GPU", "1 of 1 tests were skipped"])

    def test_names_what_only_all_runs(self):
        _, lines, _ = self.run_command()
        _, lines_of_all, _ = self.run_command("--all")

        self.assertEqual(lines[-3], "left out: 2 test programs (gpu_a gpu_b), and sanitizers; --all runs them")
        self.assertFalse([line for line in lines_of_all if "left out" in line])

    def test_all_adds_sanitizers_and_fuzzing(self):
        code, lines, calls = self.run_command("--all")

        self.assertEqual(code, 0, lines)
        self.assertEqual(
            [call for call in calls if call.startswith(("build", "fuzz"))],
            ["build release", "build asan unit_tests", "build tsan threads_tests", "fuzz all 20000"],
        )
        ctests = [re.sub(r"--output-junit \S+ ", "", call) for call in calls if call.startswith("ctest")]
        expected = (("release", None), ("asan", "unit"), ("tsan", "threads"))
        for ctest, (preset, label) in zip(ctests, expected, strict=True):
            self.assertIn(f"--test-dir build/{preset} ", ctest)
            self.assertEqual("--label" in ctest, label is not None)
            self.assertTrue(label is None or ctest.endswith(f"--label-regex ^{label}$"), ctest)
        self.assertEqual(lines[-1], "3 of 3 tests were skipped")

    def test_names_the_step_that_failed(self):
        (self.top / "fails").touch()

        code, lines, calls = self.run_command("--all")

        self.assertNotEqual(code, 0)
        self.assertRegex(lines[-3], r'^== FAILED in step "Tests" after ')
        self.assertFalse([call for call in calls if "asan" in call])

    def test_refuses_arguments_that_it_does_not_know(self):
        for arguments in (["--quick"], ["--all", "more"], ["--stress"], ["--stress", "0"]):
            with self.subTest(arguments=arguments):
                code, lines, calls = self.run_command(*arguments)

                self.assertEqual((code, calls), (2, []))
                self.assertIn("usage: scripts/test [--all | --stress N [--only REGEX]]", lines[0])


class Stress(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)

    def tests(self, **commands):
        """Names, each with what its shell runs. The label is the name's part before the underscore."""
        lines = []
        for name, command in commands.items():
            script = self.build / f"{name}.sh"
            script.write_text(f"cd {self.build}\n{command}\n")
            lines += [
                f'add_test({name} "sh" "{script}")',
                f'set_tests_properties({name} PROPERTIES LABELS "{name.split("_")[0]}" SKIP_RETURN_CODE 77)',
            ]
        (self.build / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")

    def start(self, *arguments):
        command = [sys.executable, str(SCRIPTS / "tests/stress.py"), *arguments, "--build", str(self.build)]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A shell starts what it runs in the background with SIGINT ignored, and tests may run there.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def stress(self, *arguments):
        process = self.start(*arguments, "--loops", "1")
        output, _ = process.communicate(timeout=120)
        return process.returncode, output

    def runs(self, name):
        file = self.build / name
        return len(file.read_text().split()) if file.exists() else 0

    def test_repeats_unit_programs_most_and_leaves_out_extra_ones(self):
        self.tests(unit_a="echo run >> a", resilience_b="echo run >> b", extra_c="echo run >> c")

        code, output = self.stress("10")

        self.assertEqual(code, 0, output)
        self.assertEqual([self.runs(name) for name in "abc"], [10, 3, 0])
        self.assertRegex(output, r"unit_a +10 +0 +0 ")

    def test_one_failure_of_several_runs_fails_and_leaves_its_output(self):
        self.tests(unit_a="echo run >> a; echo this is $(wc -l < a); [ $(wc -l < a) -ne 2 ]", unit_b="exit 77")

        code, output = self.stress("3")

        self.assertEqual(code, 1)
        self.assertRegex(output, r"unit_a +3 +1 +0 ")
        self.assertRegex(output, r"unit_b +3 +0 +1 ")
        self.assertIn("skipped: unit_b: unit_b: SKIP_RETURN_CODE=77", output)
        self.assertIn("this is 2", (self.build / "stress/unit_a-2.log").read_text())
        self.assertEqual(len(list((self.build / "stress").iterdir())), 1)

    def test_takes_what_is_asked_for_by_name_or_label(self):
        self.tests(unit_a="echo run >> a", unit_b="echo run >> b", interop_c="echo run >> c")

        code, output = self.stress("1", "--only", "unit_a|^interop$")

        self.assertEqual(code, 0, output)
        self.assertEqual([self.runs(name) for name in "abc"], [1, 0, 1])
        self.assertEqual(self.stress("1", "--only", "nothing")[0], 2)

    def test_busy_loops_end_however_it_ends(self):
        self.tests(unit_a="echo run >> a; exec sleep 1000")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                (self.build / "a").unlink(missing_ok=True)
                process = self.start("1", "--loops", "2")
                self.assertTrue(wait_until(lambda: self.runs("a") == 1))
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                is_loop = lambda pid: b"while os.getppid()" in Path(f"/proc/{pid}/cmdline").read_bytes()  # noqa: E731
                loops = [int(pid) for pid in children if is_loop(pid)]
                others = [int(pid) for pid in children if int(pid) not in loops]
                self.assertEqual(len(loops), 2)

                process.send_signal(number)
                process.communicate(timeout=60)

                self.assertTrue(wait_until(lambda: not any(is_running(pid) for pid in loops)))
                if number == signal.SIGKILL:
                    for pid in others:
                        os.killpg(pid, signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
