#pragma once

// How precisely layers multiply matrices, convolutions among them. Everything else is f32 whatever is chosen: weights,
// activations, gradients and optimizer slots as they are stored, and the sums of products. So a savepoint is the same
// kind of file, and a model may be trained in one precision and used in another.
//
// Bits depend on it: it is part of what a run records of its arithmetic, and a resume in another precision is refused
// unless SuperviseOptions::accept_other_arithmetic says that this is wanted. Each gives the same bits each time. CPUs
// compute in f32 alone.

#include <string_view>

namespace holdfast {

enum class Precision {
  f32,   // factors as they are
  tf32,  // factors rounded to 10 bits of mantissa (NVIDIA's TensorFloat-32) on their way into tensor cores
  // Factors rounded to bfloat16, 7 bits of mantissa, to nearest and ties to even, right before each product, from
  // weights that stay f32. What a convolution gives is rounded once more, since cuDNN gives it in the type that it
  // takes. Numbers beyond 3.39e38 become infinite.
  bf16,
};

// "f32", "tf32", "bf16".
std::string_view name(Precision precision);
// Throws Error{invalid_argument} for a name that no precision has.
Precision precision_from_name(std::string_view name);

}  // namespace holdfast
