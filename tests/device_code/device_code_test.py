"""The machine code that nvcc made of the kernels for sm_90 keeps the promises of their sources. This needs no GPU.

    tests/device_code/run BUILD
"""

import os
import re
from pathlib import Path

import pytest
from machine_code import Instruction, contractions, read_kernels

LIBRARY = Path(os.environ["HOLDFAST_CUDA_LIBRARY_FILE"])

# One word of each stripe of a leaf's block in which arrays meet: 16 words of 8 bytes. This path is rarely taken.
DIGEST = "digest_kernel"
DIGEST_STACK_BYTES = 16 * 8
# The results of a program's instructions, which later ones find by their numbers.
ELEMENT_PROGRAM = "element_program_kernel"
STACKS = {
    DIGEST: DIGEST_STACK_BYTES,
    # The results of up to 24 instructions, which the program names by number; the flat kernel has four elements a thread.
    ELEMENT_PROGRAM: 24 * 4,
    "flat_program_kernel<1>": 24 * 4,
    "flat_program_kernel<4>": 4 * 24 * 4,
}

# Kernels for vectors of 16 bytes, recognised by the width among their parameters, or by their name.
IN_VECTORS = re.compile(
    r"elements_kernel<4, .*|add_in_order_kernel<\d+, 4>|gather_through_link_kernel<4>|pool_\w+<4>|column_\w+<4>|"
    r"(round|widen|dropout)_kernel<true>"
)
# Those that read each element separately, since there are few: one number for each channel of a model.
NOT_IN_VECTORS = {"elements_kernel<4, MovingPass>"}
# Those that write at most one number.
WRITES_A_FLAG = {"elements_kernel<4, NotFinitePass>"}


@pytest.fixture(scope="session")
def kernels():
    found = read_kernels(LIBRARY, "sm_90")
    if not found:
        pytest.skip(f"{LIBRARY} has no code for sm_90: it was configured with other CMAKE_CUDA_ARCHITECTURES")
    return found


def test_all_kernels_are_read(kernels):
    names = {kernel.name for kernel in kernels}

    assert len(kernels) > 100
    assert {DIGEST, "elements_kernel<4, AdamPass>", "add_in_order_kernel<16, 4>", "softmax<WarpOfRow>"} <= names


def test_only_arrays_that_are_found_by_number_are_on_a_stack(kernels):
    assert {kernel.name: kernel.stack_bytes for kernel in kernels if kernel.stack_bytes} == STACKS


def test_no_register_is_spilled(kernels):
    """Those arrays are their kernels' whole stacks (above), so accesses to them are not spills."""
    assert [k.name for k in kernels if k.name not in STACKS and (k.has("STL") or k.has("LDL"))] == []


def test_vectors_are_read_and_written_as_such(kernels):
    in_vectors = [k for k in kernels if IN_VECTORS.fullmatch(k.name) and k.name not in NOT_IN_VECTORS]

    assert len(in_vectors) > 30
    assert [k.name for k in in_vectors if not k.has("LDG", "128")] == []
    assert [k.name for k in in_vectors if not k.has("STG", "128") and k.name not in WRITES_A_FLAG] == []


def test_no_product_and_sum_were_made_one(kernels):
    assert {k.name: [i.text for i in found] for k in kernels if (found := contractions(k.instructions))} == {}


def instructions(*lines):
    return [Instruction(line) for line in lines]


def test_a_contraction_is_found():
    sum_of_products = instructions(
        "LDG.E R2, desc[UR4][R6.64]", "LDG.E R3, desc[UR4][R8.64]", "FMUL R4, R2, c[0x0][0x220]", "FFMA R4, R3, R5, R4"
    )
    moment = instructions("LDG.E R2, desc[UR4][R6.64]", "FFMA R4, R2, c[0x0][0x220], R3")

    assert [i.text for i in contractions(sum_of_products)] == ["FFMA R4, R3, R5, R4"]
    assert len(contractions(moment)) == 1


def test_divisions_and_functions_are_no_contractions():
    division = instructions(
        "MUFU.RCP R3, R2", "FFMA R4, -R2, R3, 1", "FFMA R3, R3, R4, R3", "FFMA R5, R1, R3, RZ", "FFMA R4, -R2, R5, R1"
    )
    exponential = instructions("FFMA R3, R2, R6, -R5", "FADD R3, R3, R7", "MUFU.EX2 R3, R3")
    polynomial = instructions("FFMA R8, R7, R8, -0.0523", "FFMA R7, R7, R8, RZ", "@!P0 FFMA R5, R4, R7, R4")

    assert contractions(division) == contractions(exponential) == contractions(polynomial) == []
