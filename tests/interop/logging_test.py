"""Python's csv and TensorBoard read what CSVLogger and TensorBoard callbacks write, also after failures."""

import csv
import json
import os
import subprocess
import sys

import h5py
import hdf5plugin  # noqa: F401, savepoints are compressed with zstd
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator as PluginAccumulator
from tensorboard.util import tensor_util

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


def shown(folder, part):
    """[(step, bytes)] by tag, as the program TensorBoard keeps them: it makes tensors of all kinds of values."""
    board = PluginAccumulator(str(folder / "tensorboard" / part), size_guidance={"tensors": 0}).Reload()
    return {tag: [(event.step, event.tensor_proto.SerializeToString(deterministic=True)) for event in board.Tensors(tag)]
            for tag in board.Tags()["tensors"]}


def tensors(folder, part, tag):
    board = PluginAccumulator(str(folder / "tensorboard" / part), size_guidance={"tensors": 0}).Reload()
    return [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in board.Tensors(tag)]


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


def test_tensorboard_shows_the_means_of_steps(undisturbed):
    losses = tensors(undisturbed, "steps", "batch_loss")

    assert [step for step, _ in losses] == list(range(8, EPOCHS * 16 + 1, 8))
    table = rows(undisturbed)
    assert float(losses[1][1]) == np.float32(table[0]["loss"])


def test_tensorboard_shows_histograms_and_pictures_of_weights(undisturbed):
    tags = shown(undisturbed, "weights")

    assert sorted(tags) == ["dense/bias/histogram", "dense/kernel/histogram", "dense/kernel/image",
                            "dense_1/bias/histogram", "dense_1/kernel/histogram", "dense_1/kernel/image"]
    for step, histogram in tensors(undisturbed, "weights", "dense/kernel/histogram"):
        left, right, counts = histogram.T
        assert len(counts) == 30 and counts.sum() == 2 * 8
        assert np.all(left[1:] == right[:-1]) and left[0] < right[-1]
    assert [step for step, _ in tensors(undisturbed, "weights", "dense/kernel/image")] == [1, 3]
    width, height, picture = tensors(undisturbed, "weights", "dense/kernel/image")[0][1]
    assert (width, height) == (b"8", b"2")
    assert picture.startswith(b"\x89PNG")


def test_tensorboard_shows_what_the_program_adds(undisturbed):
    notes = tensors(undisturbed, "added", "note")

    assert [(step, note.tolist()) for step, note in notes] == [(e, [f"epoch **{e}**".encode()]) for e in range(EPOCHS)]
    assert [(step, float(value)) for step, value in tensors(undisturbed, "added", "square")] == [
        (epoch, epoch**2) for epoch in range(EPOCHS)]
    assert len(tensors(undisturbed, "added", "color")) == EPOCHS


def test_tensorboard_shows_the_layers_of_the_model(undisturbed):
    board = EventAccumulator(str(undisturbed / "tensorboard/graph")).Reload()

    nodes = [(node.name, node.op, list(node.input)) for node in board.Graph().node]
    assert nodes == [("input", "Input", []), ("dense", "Dense", ["input"]), ("dense_1", "Dense", ["dense"])]


def test_tensorboard_has_a_profile_of_the_steps_that_were_asked_for(undisturbed):
    from jax.profiler import ProfileData
    folder = undisturbed / "tensorboard/train/plugins/profile/steps_2_to_4"
    space = ProfileData.from_serialized_xspace((folder / "holdfast.xplane.pb").read_bytes())

    (plane,) = space.planes
    assert plane.name == "/host:CPU"
    lines = {line.name: list(line.events) for line in plane.lines}
    assert sorted(lines) == ["fit()", "worker 1"]
    assert [event.name for event in lines["fit()"]].count("update") == 3
    shards = [event for event in lines["worker 1"] if event.name.startswith("shard ")]
    assert len(shards) == 3 and all(event.duration_ns > 0 for event in shards)
    parts = [event.name for event in lines["worker 1"]]
    assert "loss" in parts and [part for part in parts if part.startswith("dense: ")]


class Projector:
    """What the Projector tab of TensorBoard gets from its server."""

    def __init__(self, run):
        from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
        from tensorboard.plugins import base_plugin
        from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin

        folder = str(run / "tensorboard")
        multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(folder)
        multiplexer.Reload()
        provider = data_provider.MultiplexerDataProvider(multiplexer, folder)
        plugin = ProjectorPlugin(base_plugin.TBContext(logdir=folder, data_provider=provider))
        self.routes = plugin.get_plugin_apps()

    def get(self, route, **arguments):
        from werkzeug.test import Client
        response = Client(self.routes[route]).get(query_string=arguments)
        assert response.status_code == 200, response.data
        return response.data


def train_embeddings(folder, faults=""):
    program = os.path.join(os.environ["HOLDFAST_BUILD"], "bin", "logging_program")
    environment = {**os.environ, "HOLDFAST_FAULTS": faults}
    trained = subprocess.run([program, folder, "embeddings"], capture_output=True, text=True, timeout=300,
                             env=environment)
    assert trained.returncode == 0, trained.stderr


def test_the_projector_of_tensorboard_shows_tables_with_their_labels(tmp_path):
    train_embeddings(tmp_path / "run")
    projector = Projector(tmp_path / "run")

    assert json.loads(projector.get("/runs")) == ["train"]
    (table,) = json.loads(projector.get("/info", run="train"))["embeddings"]
    assert table["tensorName"] == "embedding/embeddings" and table["tensorShape"] == [5, 3]
    values = np.frombuffer(projector.get("/tensor", run="train", name=table["tensorName"]), dtype="<f4")
    with h5py.File(max((tmp_path / "run").glob("savepoint-*.h5"))) as savepoint:
        assert values.tobytes() == savepoint["model/embedding/embeddings"][()].tobytes()
    labels = projector.get("/metadata", run="train", name=table["tensorName"]).decode()
    assert labels.splitlines() == ["a", "b", '" "', "\\n", '"e"']


@pytest.mark.parametrize("faults", ["rank=0,step=4,phase=callback,fault=kill", "rank=0,step=7,fault=kill",
                                    "rank=0,step=9,phase=callback,fault=kill"])
def test_the_last_table_is_there_after_any_death(faults, tmp_path):
    train_embeddings(tmp_path / "undisturbed")
    train_embeddings(tmp_path / "run", faults)
    assert '"event":"restart"' in (tmp_path / "run/journal.jsonl").read_text()

    folder = "tensorboard/train"
    for name in ("embeddings_0.tsv", "embeddings_0_labels.tsv", "projector_config.pbtxt"):
        assert (tmp_path / "run" / folder / name).read_bytes() == (tmp_path / "undisturbed" / folder / name).read_bytes()


def expect_tensorboard_reads(run):
    inspect = [sys.executable, "-m", "tensorboard.main", "--inspect", "--logdir", str(run / "tensorboard")]
    result = subprocess.run(inspect, capture_output=True, text=True, timeout=300)

    assert result.returncode == 0, result.stderr
    ours = [line for line in result.stderr.splitlines() if "TensorFlow installation not found" not in line]
    assert not [line for line in ours if "warn" in line.lower() or "error" in line.lower()], result.stderr
    for part in ("train", "validation", "steps", "weights", "added", "graph"):
        assert f"tensorboard/{part}" in result.stdout


def test_the_program_of_tensorboard_reads_all_files_without_a_warning(undisturbed):
    expect_tensorboard_reads(undisturbed)


@pytest.mark.parametrize("faults", [
    "rank=0,step=40,fault=kill",  # another process becomes the primary rank
    "rank=0,step=31,phase=callback,fault=kill",  # just before an epoch ends
    # The survivor of the first death has rank 0 when it dies: back to the watchdog's memory or the savepoint of step 32.
    "rank=0,step=60,fault=kill;rank=0,step=61,fault=kill",
])
def test_a_recovery_neither_repeats_nor_loses_an_epoch(faults, undisturbed, tmp_path):
    train(tmp_path / "run", faults)
    # Each death has its restart, whether the watchdog first noticed the replica's mutex or its exit.
    assert (tmp_path / "run/journal.jsonl").read_text().count('"event":"restart"') == faults.count("fault=")

    assert (tmp_path / "run/log.csv").read_bytes() == (undisturbed / "log.csv").read_bytes()
    for part in ("train", "validation"):
        assert points(tmp_path / "run", part) == points(undisturbed, part)
    for part in ("steps", "weights", "added"):
        assert shown(tmp_path / "run", part) == shown(undisturbed, part), part
    expect_tensorboard_reads(tmp_path / "run")


def test_a_start_continues_the_logs_from_its_savepoint(undisturbed, tmp_path):
    # In the fourth epoch, which the savepoint of the second does not contain.
    train(tmp_path / "run", "rank=0,step=55,fault=kill-watchdog", exit_code=-9)
    assert len(rows(tmp_path / "run")) == 3
    with open(tmp_path / "run/log.csv", "a") as file:
        file.write("3,0.5")  # a row cut off by a kill
    files = sorted((tmp_path / "run/tensorboard/train").glob("events.*"))
    files[-1].write_bytes(files[-1].read_bytes()[:-5])

    train(tmp_path / "run")

    assert (tmp_path / "run/log.csv").read_bytes() == (undisturbed / "log.csv").read_bytes()
    for part in ("train", "validation"):
        assert points(tmp_path / "run", part) == points(undisturbed, part)
    for part in ("steps", "weights", "added"):
        assert shown(tmp_path / "run", part) == shown(undisturbed, part), part
