#!/usr/bin/env python3
"""loss_cases.py [--cases N] [--to FOLDER]: writes tests/unit/nn/losses/reference/losses.json and metrics.json, random
small cases of losses and metrics of values with what Keras computes for them in float64. More cases than the 8 of each
that are checked in go to a folder elsewhere:

    loss_cases.py --cases 100 --to /tmp/cases
    HOLDFAST_REFERENCE_CASES=/tmp/cases unit_nn --gtest_filter='*Cases.Give*'

A case names a class of ours and its options, and has outputs, targets, and in half of the cases weights, of samples or
of positions. The `value` of a loss is the sum over the samples of weight times loss, and its `gradient` that of half of
it, by differences of fourth order. The `value` of a metric is what is reported. `magnitude` is that of
reference_cases.py, from which the draws come.

Packages: keras and jax, in the versions of tests/interop/requirements.txt.
"""

import argparse
import json
import pathlib
import zlib

from reference.cases import draw, flag, number
from reference.solving import as_text, changed, with_magnitudes

import keras
import numpy as np

CASES = 8
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/unit/nn/losses/reference"
SCALE = 0.5


def first_of_equals(x, k, sorted=True):
    """The k largest of the last axis. The first of equal ones are taken, as by TensorFlow and JAX; NumPy takes any."""
    places = np.argsort(-np.asarray(x), axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(np.asarray(x), places, axis=-1), places


keras.src.ops.top_k = first_of_equals


def sample_shape(rng, least=2):
    """The shape of one sample: [elements], or [positions, elements]."""
    elements = int(rng.integers(least, 6))
    return (elements,) if flag(rng) else (int(rng.integers(1, 4)), elements)


def near(value):
    """The f32 that is next to a number, in float64: what our side reads."""
    return np.asarray(value, np.float32).astype(np.float64)


def scores(rng, shape):
    return draw(rng, shape)


def positive(rng, shape):
    return np.abs(draw(rng, shape))


def probabilities(rng, shape):
    return near(0.5 + draw(rng, shape) / 8.5)


def distributions(rng, shape):
    e = np.exp(draw(rng, shape))
    return near(e / e.sum(-1, keepdims=True))


def labels(rng, shape):
    return rng.integers(0, 2, shape).astype(np.float64)


def signs(rng, shape):
    return labels(rng, shape) * 2 - 1


def counts(rng, shape):
    return rng.integers(0, 4, shape).astype(np.float64)


def one_hot(rng, shape):
    return np.eye(shape[-1])[rng.integers(0, shape[-1], shape[:-1])]


def different(rng, shape):
    """Targets that are never an output of draw(): multiples of 1/32."""
    return rng.integers(-96, 96, shape) / 32.0


def some(*choices):
    return lambda rng, shape: choices[rng.integers(len(choices))](rng, shape)


def case(name, options, outputs, targets, least=2, flat=False, **more):
    """A class has one name and the same options in both. `least` is that of elements; `flat` means no positions. More:
    `shape` of a sample, `samples` at least, and `by_sample` where only samples have weights."""
    return {"class": name, "options": options, "outputs": outputs, "targets": targets, "least": least,
            "flat": flat} | more


def plain(name, outputs, targets, **more):
    return lambda rng: case(name, {}, outputs, targets, **more)


def huber(rng):
    # An odd multiple of 1/128, at which no distance lies.
    return case("Huber", {"delta": number(rng, 0.25, 2) + 1 / 128}, scores, different)


def cosine(rng):
    return case("CosineSimilarity", {"axis": -1}, scores, different)


def focal_options(rng):
    return {"alpha": number(rng, 0.25, 0.75), "gamma": [2.0, 0.0, 1.5, 3.0][rng.integers(4)], "from_logits": flag(rng),
            "label_smoothing": [0.0, 0.125][rng.integers(2)]}


def binary_focal(rng):
    options = {"apply_class_balancing": flag(rng)} | focal_options(rng)
    return case("BinaryFocalCrossentropy", options, scores if options["from_logits"] else probabilities, labels)


def categorical_focal(rng):
    options = focal_options(rng)
    return case("CategoricalFocalCrossentropy", options, scores if options["from_logits"] else distributions, one_hot)


def smoothed(name, outputs, targets):
    def make(rng):
        options = {"from_logits": flag(rng), "label_smoothing": [0.0625, 0.25, 1.0][rng.integers(3)]}
        return case(name, options, scores if options["from_logits"] else outputs, targets)

    return make


def class_numbers(rng, shape):
    return rng.integers(0, shape[-1], shape[:-1]).astype(np.float64)


def generalized(rng):
    return case("CategoricalGeneralizedCrossEntropy", {"q": number(rng, 0.1, 0.9)}, distributions, class_numbers)


def region(name):
    def make(rng):
        # No axis stands for all of a sample; Keras would take those of the batch.
        options = {"axis": [[], [-1]][rng.integers(2)]}
        if name == "Tversky":
            options |= {"alpha": number(rng, 0, 2), "beta": number(rng, 0, 2)}
        return case(name, options, probabilities, labels, by_sample=not options["axis"])

    return make


def ctc(rng):
    steps, classes, most_labels = (int(rng.integers(*ends)) for ends in ((4, 7), (2, 5), (1, 4)))

    def spelled(rng, shape):
        targets = np.zeros((shape[0], most_labels))
        for row in targets:
            count = rng.integers(0, most_labels + 1)
            row[:count] = rng.integers(1, classes, count)
            # A blank stands between equal labels.
            while count + (row[1:count] == row[:max(count - 1, 0)]).sum() > steps:
                count -= 1
                row[count] = 0
        return targets

    return case("CTC", {"classes": classes, "most_labels": most_labels}, scores, spelled, shape=(steps, classes),
                by_sample=True)


def keras_options(made, axes):
    """The options of Keras's class, for outputs with so many axes."""
    options = dict(made["options"])
    if isinstance(options.get("axis"), list):
        options["axis"] = tuple(options["axis"] or range(1, axes))
    for size in ("classes", "most_labels"):
        options.pop(size, None)
    return options


LOSSES = [
    plain("MeanAbsoluteError", scores, different),
    plain("MeanAbsolutePercentageError", scores, some(scores, different)),
    plain("MeanSquaredLogarithmicError", positive, positive),
    huber,
    plain("LogCosh", scores, different),
    plain("Poisson", positive, counts),
    plain("KLDivergence", distributions, some(distributions, one_hot)),
    cosine,
    plain("Hinge", scores, some(labels, signs)),
    plain("SquaredHinge", scores, some(labels, signs)),
    plain("CategoricalHinge", scores, one_hot),
    binary_focal,
    categorical_focal,
    smoothed("BinaryCrossentropy", probabilities, labels),
    smoothed("CategoricalCrossentropy", distributions, one_hot),
    generalized,
    region("Dice"),
    region("Tversky"),
    ctc,
]


def threshold_of(rng):
    # A multiple of 1/16, which no output is.
    return number(rng, 0.25, 0.75)


def counted(name):
    def make(rng):
        # Keras calls the option thresholds, since it may be a list.
        options = {"thresholds": threshold_of(rng)}
        if flag(rng):
            options["thresholds"] = [options["thresholds"] - 0.1875, options["thresholds"]]
        if name not in ("Precision", "Recall"):
            return case(name, options, probabilities, labels)
        if flag(rng):
            options["class_id"] = int(rng.integers(2))
        if flag(rng):
            options["top_k"] = int(rng.integers(1, 4))
            if flag(rng):
                del options["thresholds"]
        return case(name, options, some(probabilities, equal_scores) if "top_k" in options else probabilities, labels,
                    least=3)

    return make


def fbeta(name):
    def make(rng):
        options = {"average": ["micro", "macro", "weighted", None][rng.integers(4)],
                   "threshold": None if flag(rng) else threshold_of(rng)}
        if name == "FBetaScore":
            options["beta"] = number(rng, 0.5, 2)
        return case(name, options, some(probabilities, equal_scores), labels, flat=True)

    return make


def equal_scores(rng, shape):
    """With equal ones and zeros among them."""
    return rng.integers(0, 4, shape) / 4.0


def auc(rng):
    options = {"curve": ["ROC", "PR", "PRGAIN"][rng.integers(3)],
               "summation_method": ["interpolation", "minoring", "majoring"][rng.integers(3)],
               "multi_label": flag(rng), "from_logits": flag(rng)}
    count = int(rng.integers(2, 30))
    if flag(rng):
        options["num_thresholds"] = count
    else:
        options["thresholds"] = (rng.choice(17, count % 10 + 1, replace=False) / 16).tolist()
    labelled = {}
    if options["multi_label"] or flag(rng):
        labelled["shape"] = (int(rng.integers(2, 4)),)
        if flag(rng):
            options["label_weights"] = (rng.integers(1, 9, labelled["shape"]) / 4).tolist()
    return case("AUC", options, scores if options["from_logits"] else probabilities, labels, samples=8, **labelled)


def operating_point(name, value):
    def make(rng):
        options = {value: number(rng, 0.25, 1), "num_thresholds": [1, 2, 7, 20, 200][rng.integers(5)]}
        if flag(rng):
            options["class_id"] = int(rng.integers(2))
        return case(name, options, probabilities, labels, samples=6)

    return make


def iou(name):
    def make(rng):
        classes = int(rng.integers(2, 5))
        options = {"num_classes": classes, "ignore_class": [None, 1, 255][rng.integers(3)],
                   "sparse_y_pred": flag(rng)}
        if not name.startswith("OneHot"):
            options["sparse_y_true"] = flag(rng)
        if not name.endswith("MeanIoU"):
            options["target_class_ids"] = rng.choice(classes, rng.integers(1, classes + 1), replace=False).tolist()

        def beyond(rng, shape):
            """Class numbers, and some that are not."""
            return rng.integers(-1, classes + 1, shape[:-1]).astype(np.float64)

        def with_void(rng, shape):
            numbers = beyond(rng, shape)
            return np.where(numbers == classes, 255, numbers)

        positions = () if flag(rng) else (int(rng.integers(2, 5)),)
        return case(name, options, some(class_numbers, beyond) if options["sparse_y_pred"] else distributions,
                    some(class_numbers, with_void) if options.get("sparse_y_true") else one_hot, samples=5,
                    shape=positions + (classes,))

    return make


def binary_iou(rng):
    options = {"target_class_ids": [[0], [1], [0, 1]][rng.integers(3)], "threshold": threshold_of(rng)}
    return case("BinaryIoU", options, probabilities, labels)


def correlation(name):
    return lambda rng: case(name, {"axis": -1}, scores, scores, least=3)


def top_k(name, targets):
    return lambda rng: case(name, {"k": int(rng.integers(1, 4))}, some(scores, equal_scores), targets, least=3)


def crossentropy(name, outputs, targets):
    def make(rng):
        options = {"from_logits": flag(rng)}
        if "Sparse" not in name and name != "Perplexity":
            options["label_smoothing"] = [0.0, 0.25][rng.integers(2)]
        return case(name, options, scores if options["from_logits"] else outputs, targets)

    return make


def r2(rng):
    options = {"class_aggregation": ["uniform_average", "variance_weighted_average", None][rng.integers(3)]}
    return case("R2Score", options, scores, different, least=1, flat=True)


class Perplexity:
    """That of KerasHub, written down here."""

    def __init__(self, from_logits, dtype):
        self.mean = keras.metrics.SparseCategoricalCrossentropy(from_logits=from_logits, dtype=dtype)

    def update_state(self, *arrays):
        self.mean.update_state(*arrays)

    def result(self):
        return np.exp(np.asarray(self.mean.result()))


COUNTS = ("TruePositives", "FalsePositives", "TrueNegatives", "FalseNegatives", "Precision", "Recall")
METRICS = [
    *[plain(name, scores, different) for name in ("MeanSquaredError", "RootMeanSquaredError", "LogCoshError")],
    plain("MeanAbsolutePercentageError", scores, different),
    plain("MeanSquaredLogarithmicError", positive, positive),
    lambda rng: case("CosineSimilarity", {"axis": -1}, scores, different),
    r2,
    plain("Hinge", scores, some(labels, signs)),
    plain("SquaredHinge", scores, some(labels, signs)),
    plain("CategoricalHinge", scores, one_hot),
    plain("Poisson", positive, counts),
    plain("KLDivergence", distributions, some(distributions, one_hot)),
    crossentropy("BinaryCrossentropy", probabilities, labels),
    crossentropy("CategoricalCrossentropy", distributions, one_hot),
    crossentropy("SparseCategoricalCrossentropy", distributions, class_numbers),
    crossentropy("Perplexity", distributions, class_numbers),
    plain("Accuracy", equal_scores, equal_scores),
    top_k("TopKCategoricalAccuracy", some(one_hot, equal_scores)),
    top_k("SparseTopKCategoricalAccuracy", class_numbers),
    *[counted(name) for name in COUNTS],
    fbeta("FBetaScore"), fbeta("F1Score"),
    correlation("PearsonCorrelation"), correlation("ConcordanceCorrelation"),
    auc,
    operating_point("PrecisionAtRecall", "recall"), operating_point("RecallAtPrecision", "precision"),
    operating_point("SensitivityAtSpecificity", "specificity"),
    operating_point("SpecificityAtSensitivity", "sensitivity"),
    *[iou(name) for name in ("IoU", "MeanIoU", "OneHotIoU", "OneHotMeanIoU")],
    binary_iou,
]


def arrays_of(rng, made, number):
    samples = int(rng.integers(2, 6)) + made.get("samples", 0)
    shape = made.get("shape") or sample_shape(rng, made["least"])
    shape = (samples,) + (shape[-1:] if made["flat"] else shape)
    # MeanAbsolutePercentageError divides by targets, and no target may be 0.
    outputs, targets = made["outputs"](rng, shape), made["targets"](rng, shape)
    if "Percentage" in made["class"]:
        targets = targets + (targets == 0) * 0.5
    weights = None
    if number % 2 == 1:
        axes = 2 if number % 4 == 3 and len(shape) > 2 and not made.get("by_sample") else 1
        weights = rng.integers(0, 9, shape[:axes]) / 4.0
        weights.reshape(-1)[0] = 1.25
    return outputs, targets, weights


def text_of(made, outputs, targets, weights):
    arrays = {"outputs": outputs, "targets": targets} | ({} if weights is None else {"weights": weights})
    return {"class": made["class"], "options": made["options"]} | {key: as_text(one) for key, one in arrays.items()}


def solve_loss(rng, made, number):
    outputs, targets, weights = arrays_of(rng, made, number)
    # Hinges ask whether labels are exactly 0 or 1, and others are numbers of classes.
    moves_targets = "Hinge" not in made["class"] and targets.shape == outputs.shape
    moved = [outputs, targets] if moves_targets else [outputs]
    loss = getattr(keras.losses, made["class"])(reduction="none", **keras_options(made, outputs.ndim))

    # The value of each of several batches, which lie one after another.
    def values(count, some_outputs, some_targets):
        each = np.asarray(loss(some_targets, some_outputs))
        kept = 1 if weights is None else weights.ndim
        each = each.mean(axis=tuple(range(kept, each.ndim))) if each.ndim > kept else each
        each = each if weights is None else each * np.concatenate([weights] * count)
        return each.reshape(count, -1).sum(axis=1)

    def value(arguments):
        return [values(1, arguments[0], arguments[-1] if moves_targets else targets)[0]]

    def gradient(arguments):
        # By differences of fourth order, with a step in proportion: a logarithm bends much where a number is small.
        steps = 2.0**-11 * np.abs(outputs.reshape(-1))
        # A probability is clipped at 1.
        below = 1 - outputs.reshape(-1)
        steps = np.where((0 < below) & (below < 1), np.minimum(steps, below / 4), steps)
        moves = np.concatenate([np.diag(steps) * n for n in (1, -1, 2, -2)])
        batches = (arguments[0].reshape(1, -1) + moves).reshape((-1,) + outputs.shape[1:])
        some_targets = np.concatenate([arguments[-1] if moves_targets else targets] * len(moves))
        found = values(len(moves), batches, some_targets).reshape(4, -1)
        slopes = SCALE * (8 * (found[0] - found[1]) - (found[2] - found[3])) / (12 * steps)
        return [slopes.reshape(outputs.shape)]

    text = text_of(made, outputs, targets, weights)
    text["value"] = with_magnitudes(rng, value, moved)[0]
    text["gradient"] = with_magnitudes(rng, gradient, moved)[0]
    return text


def solve_metric(rng, made, number):
    outputs, targets, weights = arrays_of(rng, made, number)
    # Only means change a little with their inputs.
    smooth = made["class"] in ("R2Score", "Poisson", "KLDivergence", "Perplexity") or made["class"].endswith(
        ("Error", "Similarity", "Crossentropy", "Correlation"))
    is_sparse = targets.ndim < outputs.ndim
    given_weights = [] if weights is None else [weights]
    options = made["options"]
    is_counted = made["class"] in COUNTS or "num_thresholds" in options or "thresholds" in options
    if weights is not None and (is_counted or made["class"].endswith("IoU")):
        # Counts do not broadcast weights over several axes. One class, or a row of them, is one number.
        is_row = "class_id" in options or options.get("sparse_y_pred") is False
        shape = outputs.shape[:-1] if is_row else outputs.shape
        given_weights = [np.broadcast_to(weights.reshape(weights.shape + (1,) * (len(shape) - weights.ndim)), shape)]

    def value(arguments):
        maker = Perplexity if made["class"] == "Perplexity" else getattr(keras.metrics, made["class"])
        metric = maker(dtype="float64", **made["options"])
        given = [targets if len(arguments) == 1 else arguments[1], arguments[0]]
        metric.update_state(*given, *given_weights)
        return [np.asarray(metric.result(), np.float64)]

    moved = [outputs] if is_sparse or not smooth else [outputs, targets]
    text = text_of(made, outputs, targets, weights)
    if smooth:
        text["value"] = with_magnitudes(rng, value, moved)[0]
    else:
        found = value(moved)[0]
        text["value"] = as_text(found) | {"magnitude": float(max(1.0, np.abs(found).max()))}
    return text


def write(makers, solve, path, cases):
    lines = []
    for maker in makers:
        for i in range(cases):
            name = maker(np.random.default_rng(0))["class"]
            rng = np.random.default_rng([zlib.crc32(name.encode()), i])
            lines.append(json.dumps(solve(rng, maker(rng), i), separators=(",", ":")))
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=CASES, help="how many of each class")
    parser.add_argument("--to", type=pathlib.Path, default=FOLDER, help="folder of the files")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    write(LOSSES, solve_loss, arguments.to / "losses.json", arguments.cases)
    write(METRICS, solve_metric, arguments.to / "metrics.json", arguments.cases)


if __name__ == "__main__":
    main()
