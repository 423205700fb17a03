"""Shared by the tests of safetensors and .npz files: arrays of all types, and the program that converts."""

import os
import subprocess

import ml_dtypes
import numpy as np

TYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.int16, np.int32, np.int64,
         np.uint8, np.uint16, np.uint32, np.uint64, np.bool_]
SHAPES = [(), (1,), (7,), (2, 0, 5), (3, 4), (2, 3, 4, 5), (300, 400)]


def arrays():
    """Every type in every shape, with random bits that include NaN payloads and denormals."""
    random = np.random.default_rng(5)
    result = {}
    for dtype in map(np.dtype, TYPES):
        for shape in SHAPES:
            count = int(np.prod(shape))
            bits = random.integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
            if dtype == np.bool_:
                bits &= 1
            name = f"{dtype.name}/é {'x'.join(map(str, shape))}"
            result[name] = bits.view(dtype).reshape(shape)
    return result


def assert_same_bits(actual, expected):
    assert sorted(actual) == sorted(expected)
    for name, array in expected.items():
        assert actual[name].dtype == array.dtype, name
        assert actual[name].shape == array.shape, name
        assert np.ascontiguousarray(actual[name]).tobytes() == np.ascontiguousarray(array).tobytes(), name


def run(source, target, path_in, path_out):
    program = os.path.join(os.environ["HOLDFAST_BUILD"], "bin", "exchange_program")
    return subprocess.run([program, source, target, path_in, path_out], capture_output=True, text=True, timeout=120)


def convert(source, target, path_in, path_out):
    result = run(source, target, path_in, path_out)
    assert result.returncode == 0, result.stderr


def refusal(source, path_in, path_out):
    """Returns the sentence that refuses a file, and checks that nothing was written."""
    result = run(source, "npz", path_in, path_out)
    assert result.returncode == 1, (result.returncode, result.stderr)
    assert not os.path.exists(path_out)
    return result.stderr
