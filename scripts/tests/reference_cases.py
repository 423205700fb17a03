#!/usr/bin/env python3
"""reference_cases.py [--cases N] [--to FOLDER] [KIND...]: writes tests/unit/nn/layers/reference/KIND.json, random small
cases of each layer with what Keras computes for them in float64. Without a KIND, all are written. More cases than the 8
that are checked in go to a folder elsewhere, which HOLDFAST_REFERENCE_CASES names for unit_nn:

    reference_cases.py --cases 100 --to /tmp/cases
    HOLDFAST_REFERENCE_CASES=/tmp/cases unit_nn --gtest_filter='ReferenceCases.*'

Operations between layers ("Operation") have no counterpart in Keras. They are written down here, in NumPy.

A case has a layer's configuration as in files of Holdfast, inputs, weights, a gradient of the output, and what is
expected: the output (of some layers with further ones), and the gradients of inputs (added up over the samples) and parameters. Gradients are central
differences of the output, which in float64 are right to 1e-8. Layers that draw random numbers are compared in
inference alone.

`magnitude` says how far rounding may move a result: the largest change of an element when all numbers that enter it
change by a random sign times their size (taken from a small such change), plus the largest element. The test
multiplies it by rounding errors of f32.

Packages: keras and jax, in the versions of tests/interop/requirements.txt.
"""

import argparse
import json
import pathlib
import zlib

import numpy as np

from reference import elements, normalizations, operations, sequences, windows
from reference.cases import activations
from reference.solving import solve

CASES = 8
# Later cases that found an error: here a kernel of oneDNN gave wrong gradients.
ALSO = {"Conv2DTranspose": (43,)}
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/unit/nn/layers/reference"
MAKERS = {**elements.MAKERS, **normalizations.MAKERS, **sequences.MAKERS, **windows.MAKERS}

# After the cases above, half as many with options that most models leave alone, and half as many with further outputs.
FURTHER = [
    {"LayerNormalization": normalizations.normalization_of_axes, "UpSampling2D": windows.bilinear, **sequences.RARE},
    sequences.OUTPUTS,
]


def write(kind, makers, folder):
    cases = []
    for i, maker in [*enumerate(makers), *((i, MAKERS[kind]) for i in ALSO.get(kind, ()) if i >= len(makers))]:
        # A kind's cases depend on nothing but its name.
        rng = np.random.default_rng([zlib.crc32(kind.encode()), i])
        made = maker(rng)
        cases.append(solve(rng, made, made["modes"][i % len(made["modes"])]))
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases)
    (folder / f"{kind}.json").write_text(f'{{"kind":"{kind}","cases":[\n{lines}\n]}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=CASES, help="how many of each layer")
    parser.add_argument("--to", type=pathlib.Path, default=FOLDER, help="folder of the files")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    makers = {kind: [maker] * arguments.cases for kind, maker in MAKERS.items()}
    # Each function has cases of its own: of the many, one or two are checked in.
    is_more = arguments.cases > CASES
    functions = [elements.activation(one) for one in range(len(activations(np.random.default_rng(0))))]
    makers["Activation"] = functions * (arguments.cases if is_more else 1)
    # Both modes of each of them.
    makers["BatchNormalization"] = [normalizations.BATCH_NORMALIZATIONS[one // 2 % 4] for one in range(arguments.cases)]
    for kind, maker in [one for further in FURTHER for one in further.items()]:
        makers[kind] += [maker] * (arguments.cases // 2)
    makers["Operation"] = operations.OPERATIONS * arguments.cases
    for kind in arguments.kinds or sorted(makers):
        write(kind, makers[kind], arguments.to)
        print(kind, flush=True)


if __name__ == "__main__":
    main()
