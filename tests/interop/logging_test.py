"""Python's csv and TensorBoard read what CSVLogger and TensorBoard callbacks write, also after failures."""

import csv
import os
import subprocess

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

EPOCHS = 5


def train(folder, faults="", exit_code=0):
    """Runs logging_program and checks its exit code; a failure shows what it printed."""
    program = os.path.join(os.environ["HOLDFAST_BUILD"], "bin", "logging_program")
    environment = {**os.environ, "HOLDFAST_FAULTS": faults}
    result = subprocess.run([program, folder], capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == exit_code, result.stderr


def rows(folder):
    with open(folder / "log.csv", newline="") as file:
        return list(csv.DictReader(file))


def points(folder, part):
    """[(step, value)] by tag, as TensorBoard shows them: all files together, without points that were withdrawn."""
    board = EventAccumulator(str(folder / "tensorboard" / part), size_guidance={"tensors": 0, "scalars": 0}).Reload()
    scalars = {tag: [(event.step, event.value) for event in board.Scalars(tag)] for tag in board.Tags()["scalars"]}
    tensors = {tag: [(event.step, event.tensor_proto.float_val[0]) for event in board.Tensors(tag)]
               for tag in board.Tags()["tensors"]}
    return scalars | tensors


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    train(folder)
    return folder


def test_a_table_has_keras_columns_and_one_row_for_each_epoch(undisturbed):
    table = rows(undisturbed)

    assert list(table[0]) == ["epoch", "loss", "mean_absolute_error", "val_loss", "val_mean_absolute_error"]
    assert [row["epoch"] for row in table] == [str(epoch) for epoch in range(EPOCHS)]
    assert float(table[-1]["val_loss"]) < float(table[0]["val_loss"])


def test_tensorboard_shows_the_values_of_the_table_under_keras_names(undisturbed):
    table = rows(undisturbed)
    for part, prefix in (("train", ""), ("validation", "val_")):
        expected = {"epoch_" + name: [(epoch, float(np.float32(row[prefix + name]))) for epoch, row in enumerate(table)]
                    for name in ("loss", "mean_absolute_error")}

        assert points(undisturbed, part) == expected


@pytest.mark.parametrize("faults", [
    "rank=0,step=40,fault=kill",  # another process becomes the primary rank
    "rank=0,step=31,phase=callback,fault=kill",  # just before an epoch ends
    "rank=0,step=60,fault=kill;rank=1,step=60,fault=kill",  # back to the watchdog's memory or the savepoint of step 32
])
def test_a_recovery_neither_repeats_nor_loses_an_epoch(faults, undisturbed, tmp_path):
    train(tmp_path / "run", faults)
    # Each death has its restart, whether the watchdog first noticed the replica's mutex or its exit.
    assert (tmp_path / "run/journal.jsonl").read_text().count('"event":"restart"') == faults.count("fault=")

    assert (tmp_path / "run/log.csv").read_bytes() == (undisturbed / "log.csv").read_bytes()
    for part in ("train", "validation"):
        assert points(tmp_path / "run", part) == points(undisturbed, part)


def test_a_start_continues_the_logs_from_its_savepoint(undisturbed, tmp_path):
    # In the fourth epoch, which the savepoint of the second does not contain.
    train(tmp_path / "run", "rank=0,step=55,fault=kill-watchdog", exit_code=-9)
    assert len(rows(tmp_path / "run")) == 3
    with open(tmp_path / "run/log.csv", "a") as file:
        file.write("3,0.5")  # a row cut off by a kill
    shown = sorted((tmp_path / "run/tensorboard/train").iterdir())
    shown[-1].write_bytes(shown[-1].read_bytes()[:-5])

    train(tmp_path / "run")

    assert (tmp_path / "run/log.csv").read_bytes() == (undisturbed / "log.csv").read_bytes()
    for part in ("train", "validation"):
        assert points(tmp_path / "run", part) == points(undisturbed, part)
