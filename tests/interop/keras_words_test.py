"""docs/keras.md has a row for each word of Keras, and names nothing of Holdfast that does not exist."""

import re
import sys
from pathlib import Path

import keras
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts/tests"))

import keras_words  # noqa: E402


@pytest.fixture(scope="module")
def headers():
    return keras_words.Headers.of_tree()


@pytest.fixture
def page():
    return keras_words.PAGE.read_text()


def without_row(page, word):
    lines = [line for line in page.splitlines() if not line.startswith(f"| `{word}`")]
    assert len(lines) == len(page.splitlines()) - 1
    return "\n".join(lines)


def test_the_page_has_all_words_of_keras_and_only_names_that_exist(page, headers):
    assert keras_words.problems(page, headers, keras) == []


@pytest.mark.parametrize("word", ["EinsumDense", "MeanSquaredError` (loss)", "Muon", "InverseTimeDecay",
                                  "OrbaxCheckpoint", "squareplus", "validation_freq", "EarlyStopping(baseline=)"])
def test_a_missing_row_is_a_problem(page, headers, word):
    if word.endswith("(loss)"):
        # The name has a row in the section of metrics, which does not help that of losses.
        section = page[page.index("\n## Losses"):page.index("\n## Metrics")]
        page = page.replace(section, without_row(section, "MeanSquaredError"))
        word = "MeanSquaredError"
    else:
        page = without_row(page, word)

    found = keras_words.problems(page, headers, keras)

    assert any(f"no row for {word}" in problem for problem in found), found


@pytest.mark.parametrize("name", ["Densee", "losses::MeanSquaredErrors", "losses::R2Score", "ModelCheckpoint::best_of",
                                  "FitOptions::epoch", "WhenNotFinite::halt", "Optimizer::compile()", "batch_all()"])
def test_a_name_that_no_header_declares_is_a_problem(page, headers, name):
    page = re.sub(r"^\| `Dense` \| `Dense` \|", f"| `Dense` | `{name}` |", page, flags=re.MULTILINE)

    found = keras_words.problems(page, headers, keras)

    assert any(f"declares {name.removesuffix('()')}" in problem for problem in found), found


def test_words_that_keras_lacks_are_a_problem(page, headers):
    page = page.replace("| `Dense` |", "| `Dense`, `Denser` |", 1)

    assert any("has no Denser" in problem for problem in keras_words.problems(page, headers, keras))


def test_counts_follow_the_rows(page, headers):
    changed = re.sub(r"^\| `Dense` \| `Dense` \|", "| `Dense` | absent |", page, flags=re.MULTILINE)

    found = keras_words.problems(changed, headers, keras)

    assert len(found) == 2 and all("table of counts" in problem for problem in found), found  # of layers, and the sum
