"""Random small cases of layers, and what Keras computes for them in float64. Importing this sets Keras up, so it comes before
every other import of Keras."""

import os

os.environ["KERAS_BACKEND"] = "numpy"
os.environ["JAX_ENABLE_X64"] = "1"
import keras
from keras.src.backend.common import dtypes

# Keras (3.15) takes f64 and f64 for f32 in its NumPy backend.
promoted = dtypes._lattice_result_type
dtypes._lattice_result_type = lambda *kinds: {"float32": "float64"}.get(promoted(*kinds), promoted(*kinds))
keras.config.set_floatx("float64")
