"""The figures of bench/gpu, and its programs with little models where there is no GPU: runs_test.py FOLDER_OF_PROGRAMS"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import figures  # noqa: E402

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

    def test_state_shares_of_what_the_machine_allows(self):
        limits = {"matrix_tflop_s": {"bf16": 1000.0}, "copy_gb_s": 4000.0, "host_to_device_gb_s": 65.5}
        line = lines_of(mlp({"holdfast/host": [1e-3]}), "host", limits)[-1]
        self.assertIn("37.5 % of the bf16 matrix rate", line)
        self.assertIn("38.7 % of the copy bandwidth", line)
        self.assertIn("100.1 % of the link (aimed at >= 0.9: met)", line)

    def test_find_the_stall_behind_each_snapshot(self):
        # Behind steps 10 and 20: in the time of steps 11 and 21.
        turn = {"first_step": 6, "times": [1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5]}
        self.assertEqual(figures.stalls(turn, 10), [3, 4])


class Programs(unittest.TestCase):
    """Each figure is there and well formed, whatever it says: a device that is pretended, and no CUDA runtime."""

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
