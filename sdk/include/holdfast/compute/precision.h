#pragma once

// The precision in which layers multiply matrices; convolutions are such products too. Everything else is f32 in each
// case: stored weights, activations, gradients and optimizer slots, and the sums of products. So savepoints do not
// depend on it, and a model may be trained in one precision and used in another.
//
// The bits of a run depend on it. A run records its precision with its arithmetic and refuses to resume in another one,
// unless SuperviseOptions::accept_other_arithmetic is set. Within one precision results are reproducible to the bit.
//
// CPUs compute in f32, and in bf16 if they have instructions for it (avx512_bf16, or amx_bf16 with its tiles). Another
// precision is refused before a run begins: Error{invalid_argument} for tf32, Error{unavailable} for bf16 on a CPU
// without them. docs/numerics.md says where numbers are rounded.
//
//   supervise(argc, argv, {.replicas = 2, .precision = Precision::bf16, .run_directory = "run"}, train);
//   Replica alone = Replica::alone({.precision = Precision::bf16});  // without a watchdog

#include <string_view>

namespace holdfast {

// The factors of each product are:
enum class Precision {
  f32,   // used as they are
  tf32,  // rounded to 10 bits of mantissa (NVIDIA's TensorFloat-32) on the way into the tensor cores
  // Rounded to bfloat16 (7 bits of mantissa, to nearest, ties to even) just before each product, from
  // weights that stay f32. On GPUs the result of a convolution is rounded once more, since cuDNN returns
  // it in the type of its factors. Numbers beyond 3.39e38 become infinite.
  bf16,
};

// The name in options and arithmetic.txt: "f32", "tf32" or "bf16".
std::string_view name(Precision precision);
// The inverse of name(). Throws Error{invalid_argument} for any other text.
Precision precision_from_name(std::string_view name);

}  // namespace holdfast
