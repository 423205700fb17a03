"""Tests the parts of bench/gpu, and its programs with small models on CPUs: runs_test.py FOLDER_OF_PROGRAMS"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import figures  # noqa: E402
import runs  # noqa: E402
from budget import Budget  # noqa: E402
from contender import Contender, Failed, all_of  # noqa: E402

BIN = None  # set from the command line


def mlp(seconds, failures=None):
    return {
        "model": "mlp",
        "precision": "tf32",
        "batch": 2048,
        "divisor": 1,
        "step_seconds": seconds,
        "failures": failures or {},
    }


def lines_of(measured, data="device", limits=None):
    return list(figures.of_training(measured, data, ("eager", "graph"), limits or {}))


class Figures(unittest.TestCase):
    def test_count_the_parameters_of_both_models(self):
        self.assertEqual(figures.mlp_parameters(), 41_157_101)
        self.assertEqual(figures.lenet5_parameters(), 61_706)

    def test_count_the_flops_of_a_step(self):
        weights = 8000 * 4000 + 4000 * 2000 + 2000 * 500 + 500 * 300 + 300
        self.assertEqual(figures.step_flops(mlp({})), 2048 * (6 * weights - 2 * 8000 * 4000))

    def test_compare_with_the_quickest_peer(self):
        (line,) = lines_of(mlp({"holdfast/device": [2.0, 2.0], "eager/device": [9.0, 9.0], "graph/device": [3.0, 3.0]}))
        self.assertIn("PyTorch at best (graph)", line)
        self.assertIn("1.50 times as many steps; aimed at >= 1.15: met", line)

    def test_tell_what_a_gpu_allows(self):
        measured = {"device": "a GPU", "copy_gb_s": 4000.4, "host_to_device_gb_s": 55, "device_to_host_gb_s": 52.04}
        measured["matrix_tflop_s"] = {"tf32": 401.2}
        measured["layer_tflop_s"] = {"tf32": {"forward": 300.6, "weight_gradient": 299.0}}
        told = list(figures.of_limits(measured))
        self.assertIn("a GPU: copies within the device 4000 GB/s", told[0])
        self.assertIn("to the device 55.0 GB/s, back 52.0 GB/s", told[1])
        self.assertEqual(told[2], "matrix products in tf32 401 TFLOP/s")
        self.assertIn("in tf32, as cuBLASLt proposes them first: forward 301, weight gradient 299 TFLOP/s", told[3])

    def test_say_what_is_missed(self):
        (line,) = lines_of(mlp({"holdfast/device": [2.0], "graph/device": [2.0]}))
        self.assertIn("aimed at >= 1.15: MISSED", line)

    def test_take_the_median_of_the_rounds_ratios(self):
        self.assertEqual(figures.ratio([2.0, 30.0, 3.0], [1.0, 10.0, 1.0]), 3.0)

    def test_say_who_was_not_measured_and_why(self):
        (line,) = lines_of(mlp({"graph/device": [2.0]}, {"holdfast/device": "it fell over"}))
        self.assertIn("not measured: it fell over", line)
        (line,) = lines_of(mlp({"holdfast/device": [2.0]}))
        self.assertIn("no peer was measured", line)

    def test_tell_the_short_round_where_there_is_no_other(self):
        measured = mlp({}) | {"first_round_step_seconds": {"holdfast/device": [2.0], "eager/device": [4.0]}}
        lines = lines_of(measured)
        self.assertIn("not measured: no round was finished", lines[0])
        self.assertIn("in the short round before: Holdfast 2000.000 ms a step, PyTorch at best (eager) 4000", lines[1])

    def test_say_what_was_cut_off_before_its_first_round(self):
        (line,) = figures.of_passes({"holdfast": [], "runtime": [], "pytorch_adam_seconds": []})
        self.assertIn("not measured", line)
        (line,) = figures.of_snapshot({"every": 10, "turns": [], "passes": []})
        self.assertIn("not measured", line)

    def test_state_shares_of_what_the_machine_allows(self):
        limits = {"matrix_tflop_s": {"bf16": 1000.0}, "copy_gb_s": 4000.0, "host_to_device_gb_s": 65.5}
        line = lines_of(mlp({"holdfast/host": [1e-3]}), "host", limits)[-1]
        self.assertIn("37.5 % of the bf16 matrix rate", line)
        self.assertIn("38.7 % of the copy bandwidth", line)
        self.assertIn("100.1 % of the link (aimed at >= 0.9: met)", line)

    def test_find_the_stall_after_each_snapshot(self):
        # Snapshots after steps 10 and 20 are in the times of steps 11 and 21.
        turn = {"first_step": 6, "times": [1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5]}
        self.assertEqual(figures.stalls(turn, 10), [3, 4])


class Rounds(unittest.TestCase):
    def setUp(self):
        self.time = 0.0

    def made(self, wanted, seconds, round_seconds):
        made = 0
        for _ in Budget(seconds, lambda: self.time).rounds(wanted):
            self.time += round_seconds
            made += 1
        return made

    def test_are_all_that_are_wanted_where_there_is_time(self):
        self.assertEqual(self.made(5, 100, 10), 5)

    def test_end_before_one_that_does_not_fit(self):
        self.assertEqual(self.made(5, 35, 10), 3)

    def test_are_two_at_least(self):
        self.assertEqual(self.made(5, 15, 10), 2)

    def test_do_not_begin_when_nothing_is_left(self):
        self.assertEqual(self.made(5, 10, 10), 1)


class Turns(unittest.TestCase):
    """The cases decide which contenders are asked, and in which order. Tested here is the use of the answers."""

    def setUp(self):
        self.left = 100.0
        self.comparison = runs.Comparison(1.0, lambda share=1: share * self.left)

    def turn(self, seconds=None, error=None):
        def ask(warm, steps, patience):
            self.asked = (steps, patience)
            if error:
                raise Failed(error)
            return {"steps": steps, "seconds": steps * seconds, "loss": 0.0}

        self.comparison.turn("a", ask)
        return self.comparison.measured()

    def test_are_as_long_as_the_one_before_tells(self):
        self.turn(seconds=0.01)
        measured = self.turn(seconds=0.02)
        self.assertEqual(self.asked, (100, 100.0))
        self.assertEqual(measured["step_seconds"], {"a": [0.02]})
        self.assertEqual(measured["first_round_step_seconds"], {"a": [0.01]})

    def test_leave_others_time_when_a_first_one_takes_long(self):
        self.turn(seconds=0.01)
        self.assertEqual(self.asked, (5, 50.0))

    def test_of_who_failed_are_left_out(self):
        self.turn(seconds=0.01)
        measured = self.turn(error="it fell over")
        self.assertEqual((measured["first_round_step_seconds"], measured["failures"]), ({}, {"a": "it fell over"}))

    def test_that_the_end_of_the_time_breaks_off_leave_the_earlier_ones(self):
        self.turn(seconds=0.01)
        self.turn(seconds=0.02)

        def ask(warm, steps, patience):
            self.left = 0.0
            raise Failed("took too long")

        self.comparison.turn("a", ask)

        self.assertEqual(self.comparison.measured()["step_seconds"], {"a": [0.02]})
        self.assertEqual(self.comparison.failures, {})

    def test_without_time_are_not_begun_and_said_to_be(self):
        self.left = 0.0
        self.assertEqual(self.turn(seconds=0.01)["failures"], {"a": "no time was left"})


# Makes steps of a millisecond on request. HANG is "end" if it does not end, or the first turn that it does not answer.
STAND_IN = """
import json, os, sys, time
prefix = sys.argv[sys.argv.index("--turns") + 1]
hang = os.environ.get("HANG", "")
print("ready", flush=True)
with open(prefix + ".ask") as ask, open(prefix + ".told", "w") as told:
    for line in ask:
        number, warm, steps = line.split()[:3]
        if hang.isdigit() and int(number) >= int(hang):
            time.sleep(600)
        turn = {"turn": int(number), "steps": int(steps), "seconds": int(steps) * 1e-3, "loss": 0.5}
        print(json.dumps(turn), file=told, flush=True)
    if hang == "end":
        time.sleep(600)
"""


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def stand_in(self, name):
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\n{STAND_IN}")
        path.chmod(0o755)
        return path


class Contenders(InFolder):
    def contender(self, name="one"):
        return Contender(self.folder / name, self.folder / f"logs/{name}.log", [self.stand_in("program")])

    def test_answer_and_end_by_themselves_when_nobody_asks_any_more(self):
        contender = self.contender()
        with contender:
            told = contender.turn(1, 10, 30)
            begun = time.monotonic()
        self.assertEqual(told["steps"], 10)
        self.assertLess(time.monotonic() - begun, Contender.END_SECONDS)
        self.assertEqual(contender.process.returncode, 0)
        self.assertEqual((self.folder / "logs/one.log").read_text(), "ready\n")
        self.assertFalse((self.folder / "one").exists())

    def test_that_do_not_end_are_ended(self):
        with mock.patch.dict(os.environ, {"HANG": "end"}), mock.patch.object(Contender, "END_SECONDS", 0.1):
            contender = self.contender()
            with contender:
                contender.turn(1, 10, 30)
        self.assertEqual(contender.process.returncode, -signal.SIGTERM)

    def test_that_are_mute_cost_their_patience(self):
        with mock.patch.dict(os.environ, {"HANG": "1"}), mock.patch.object(Contender, "END_SECONDS", 0.1):
            with self.contender() as contender, self.assertRaisesRegex(Failed, "took more than 0 s for 11 steps"):
                contender.turn(1, 10, 0.1)

    def test_are_all_told_to_end_before_one_is_waited_for(self):
        contenders = {name: self.contender(name) for name in ("one", "two")}
        were_asked = []
        ended = Contender.__exit__

        def end(contender, *failure):
            were_asked.append([other.ask for other in contenders.values()])
            ended(contender, *failure)

        with mock.patch.object(Contender, "__exit__", end), all_of(contenders):
            for contender in contenders.values():
                contender.turn(0, 1, 30)

        self.assertEqual(were_asked, [[None, None], [None, None]])


class Start(InFolder):
    """A peer that imports PyTorch slowly, as from a cold disk."""

    def test_is_no_way_that_takes_long(self):
        peer = Contender(self.folder / "peer", self.folder / "peer.log", [self.stand_in("slow")])
        (self.folder / "bin/slow").write_text(f"#!{sys.executable}\nimport time\ntime.sleep(2)\n{STAND_IN}")
        arguments = mock.Mock(patience=100, budget=mock.Mock(left=lambda: 30.0))
        with peer:
            runs.await_start(arguments, {"pytorch": peer})
            self.assertEqual(peer.turn(1, 10, 1, "eager/device")["steps"], 10)

    def test_that_takes_too_long_is_nobodys_failure(self):
        peer = mock.Mock(turn=mock.Mock(side_effect=Failed("took more than 15 s")))
        arguments = mock.Mock(patience=100, budget=mock.Mock(left=lambda: 30.0))
        runs.await_start(arguments, {"pytorch": peer})
        runs.await_start(arguments, {})
        peer.turn.assert_called_once_with(0, 1, 15.0, "start")


class Cases(InFolder):
    """Whole cases with stand-ins for the measured programs."""

    def begin(self, case, *options, **environment):
        self.stand_in("gpu_training")
        # Python without packages has no PyTorch to compare with.
        python = self.folder / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
        python.chmod(0o755)
        command = [sys.executable, HERE / "runs.py", case, "--bin", self.folder / "bin", "--out", self.folder / "out"]
        return subprocess.Popen(
            [*map(str, command), "--python", str(python), "--trial", *options],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def figures(self):
        return json.loads((self.folder / "out/figures.json").read_text())

    def test_that_are_cut_off_keep_and_tell_what_there_is(self):
        # It stops answering in the round after two that count.
        running = self.begin("lenet5", HANG="4")
        told = ""
        while told.count("holdfast/device: ") < 3:
            line = running.stdout.readline()
            self.assertTrue(line, told)
            told += line

        running.terminate()
        told += running.communicate(timeout=60)[0]

        self.assertEqual(running.returncode, 128 + signal.SIGTERM)
        self.assertIn("figure: lenet5 tf32, data on the device: Holdfast 1.000 ms a step", told)
        self.assertEqual(len(self.figures()["lenet5"]["step_seconds"]["holdfast/device"]), 2)

    def test_that_run_out_of_time_keep_and_tell_what_there_is(self):
        running = self.begin("lenet5", "--seconds", str(runs.END_SECONDS + 3), HANG="4")
        told = running.communicate(timeout=60)[0]
        self.assertIn("figure: lenet5 tf32, data on the device: Holdfast 1.000 ms a step", told)

    def test_add_to_the_same_file(self):
        for case in ("lenet5", "mlp-bf16"):
            self.begin(case, "--rounds", "1").communicate(timeout=60)
        self.assertEqual(list(self.figures()), ["lenet5", "mlp-bf16"])

    def test_state_their_shares_of_what_an_earlier_start_measured(self):
        limits = self.folder / "limits.json"
        limits.write_text(json.dumps({"copy_gb_s": 3000.0}))
        running = self.begin("lenet5", "--rounds", "1", "--limits", str(limits))
        self.assertIn("% of the copy bandwidth", running.communicate(timeout=60)[0])
        self.assertEqual(self.figures()["lenet5"]["limits"], {"copy_gb_s": 3000.0})


class Peer(unittest.TestCase):
    def setUp(self):
        # The tested parts do not need PyTorch.
        absent = {name: mock.MagicMock() for name in ("torch", "torch.nn")}
        with mock.patch.dict(sys.modules, absent):
            import peer
        self.peer = peer

    def answer(self, training, failures, way):
        with mock.patch.object(self.peer, "Training", training), mock.patch("traceback.print_exc") as printed:
            told = self.peer.answer_or_error(mock.Mock(), {}, failures, "1", "2", way)
        return told, printed.called

    def test_way_that_fails_is_made_once_and_told_for_all_data(self):
        training = mock.Mock(side_effect=RuntimeError("cannot compile\nsomewhere\nno space left"))
        failures = {}

        first, is_printed = self.answer(training, failures, "compiled/device")
        second, _ = self.answer(training, failures, "compiled/host")

        self.assertTrue(is_printed)
        self.assertEqual(first, {"error": "RuntimeError: cannot compile ... no space left"})
        self.assertEqual(second, first)
        self.assertEqual(training.call_count, 1)

    def test_start_makes_no_way(self):
        training = mock.Mock()
        told, _ = self.answer(training, {}, "start")
        self.assertNotIn("error", told)
        training.assert_not_called()

    def test_way_that_fails_leaves_the_others(self):
        failures = {"compiled": "RuntimeError: x"}
        training = mock.Mock(return_value=mock.Mock(final_loss=lambda: 0.25))
        told, _ = self.answer(training, failures, "eager/device")
        self.assertEqual((told["steps"], told["loss"]), (2, 0.25))


class Programs(unittest.TestCase):
    """Every figure exists and is well formed, on a pretended device without a CUDA runtime."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.out = Path(holder.name)

    def run_case(self, case, *options):
        command = [sys.executable, HERE / "runs.py", case, "--bin", BIN, "--out", self.out, "--trial"]
        environment = {**os.environ, "HOLDFAST_CUDA_LIBRARY": str(BIN / "libpretended_device.so")}
        done = subprocess.run(
            [*map(str, command), "--peer-device", "cpu", "--rounds", "1", "--ways", "eager", *options],
            stdout=subprocess.PIPE,
            env=environment,
            timeout=280,
            check=False,
        )
        told = done.stdout.decode()
        self.assertIn(done.returncode, (0, 1), told)
        return told, re.findall(r"^figure: (.*)$", told, re.MULTILINE)

    def test_training_is_measured(self):
        told, lines = self.run_case("lenet5")
        self.assertRegex("\n".join(lines), r"^lenet5 tf32, data on the device: Holdfast \d+\.\d{3} ms a step", told)

    def test_training_fed_from_the_host_is_measured(self):
        told, lines = self.run_case("mlp-bf16")
        self.assertRegex("\n".join(lines), r"mlp bf16, data in the host's memory: Holdfast \d+\.\d{3} ms a step", told)

    def test_passes_over_the_state_are_measured(self):
        told, lines = self.run_case("passes")
        self.assertRegex("\n".join(lines), r"^Adam on 4192 parameters: \d+ GB/s", told)
        self.assertRegex("\n".join(lines), r"device to host, pinned: \d+\.\d GB/s", told)

    def test_the_stall_of_a_snapshot_is_measured(self):
        told, lines = self.run_case("snapshot")
        self.assertRegex("\n".join(lines), r"^a snapshot stalls training for -?\d+\.\d\d ms, -?\d+\.\d\d times", told)


if __name__ == "__main__":
    BIN = Path(sys.argv.pop()).resolve()
    unittest.main(verbosity=2)
