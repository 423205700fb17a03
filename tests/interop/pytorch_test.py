"""PyTorch computes with the state dict of a model what Holdfast does, and Holdfast with PyTorch's weights what PyTorch does.

HOLDFAST_TORCH_CURRENT names the folder of PyTorch's package, .../site-packages/torch, as for tests/torch_current/run. Without
it these tests are skipped.
"""

import json
import os
import pathlib
import subprocess
import sys

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from convert_test import holdfast
from keras_graphs_test import fill
from keras_kinds_test import savepoint_of
from keras_savepoint_test import pack
from keras_support import arrays, predicted_by_holdfast, save

folder = pathlib.Path(os.environ.get("HOLDFAST_TORCH_CURRENT", ""))
has_torch = (folder / "__init__.py").exists()
pytestmark = pytest.mark.skipif(not has_torch, reason="HOLDFAST_TORCH_CURRENT names no folder of PyTorch's package")
MODELS = {"every model": None}
if has_torch:
    # Last, so that all other packages stay those of this environment.
    sys.path.append(str(folder.parent))
    import torch

    from pytorch_models import MODELS, EncoderDecoder, Gpt2, LstmLanguageModel


def computed_by_holdfast(file, model, inputs, folder):
    """With the weights of a savepoint, in the model that was converted."""
    with h5py.File(model) as opened:
        metadata = json.loads(bytes(opened["metadata"][()]))
    pack(folder / "loaded.h5", metadata, arrays(file))
    return predicted_by_holdfast(folder / "loaded.h5", [inputs], folder)


def assert_close(found, expected):
    expected = expected.numpy().reshape(-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("kind", MODELS)
def test_both_compute_the_same_with_the_weights_of_either(kind, tmp_path):
    torch.manual_seed(1)
    model, module = MODELS[kind]()
    fill(model, seed=2)
    holdfast("convert", save(model, tmp_path, "archive"), tmp_path / "ours.h5")
    ours = tmp_path / "ours.h5"
    file = savepoint_of(ours, tmp_path)
    inputs = np.random.default_rng(3).normal(size=(3, *model.inputs[0].shape[1:])).astype("f4")
    drawn = {name: value.numpy().copy() for name, value in module.state_dict().items()}

    holdfast("convert", file, tmp_path / "a.safetensors", "--to", "gpt2" if kind == "gpt2" else "pytorch")
    save_file(drawn, tmp_path / "b.safetensors")
    holdfast("convert", tmp_path / "b.safetensors", tmp_path / "b.h5", "--like", file)

    with torch.no_grad():
        assert_close(computed_by_holdfast(tmp_path / "b.h5", ours, inputs, tmp_path), module(torch.from_numpy(inputs)))
        state = {name: torch.from_numpy(value) for name, value in load_file(tmp_path / "a.safetensors").items()}
        # Refuses a name that is missing, and one more than there is.
        module.load_state_dict(state)
        assert_close(computed_by_holdfast(file, ours, inputs, tmp_path), module(torch.from_numpy(inputs)))



def trained(example, options, folder):
    """The savepoint of an example after three steps."""
    program = os.path.join(os.environ["HOLDFAST_BUILD"], "bin", example)
    words = [program, *options, "--replicas", "1", "--steps", "3", "--run-dir", folder / "run"]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    return folder / "run" / "savepoint-0000000003.h5"


# As wholes: ids, positions, a head that is the table of ids, attention to another sequence, padding.
@pytest.mark.parametrize("kind", ["gpt2", "lstm_language_model", "encoder_decoder"])
def test_both_compute_the_same_scores_with_a_trained_model_of_sequences(kind, tmp_path):
    example, options, form, table = {
        "gpt2": ("text", ["--model", "gpt"], "gpt2", "wte.weight"),
        "lstm_language_model": ("text", ["--model", "lstm"], "pytorch", "words.weight"),
        "encoder_decoder": ("reversal", [], "pytorch", "source_words.weight"),
    }[kind]
    ours = trained(example, options, tmp_path)
    holdfast("convert", ours, tmp_path / "a.safetensors", "--to", form)
    state = {name: torch.from_numpy(value) for name, value in load_file(tmp_path / "a.safetensors").items()}
    vocabulary = len(state[table])
    module = {"gpt2": Gpt2, "lstm_language_model": LstmLanguageModel, "encoder_decoder": EncoderDecoder}[kind](vocabulary)
    draw = np.random.default_rng(3)
    ids = [draw.integers(1, vocabulary, size=(2, 64 if example == "text" else 12)).astype("i4")]
    if kind == "encoder_decoder":
        ids[0][0, 5:] = 0
        ids.append(draw.integers(1, vocabulary, size=(2, 12)).astype("i4"))

    module.load_state_dict(state)
    module.eval()
    with torch.no_grad():
        assert_close(predicted_by_holdfast(ours, ids, tmp_path), module(*map(torch.from_numpy, ids)))
