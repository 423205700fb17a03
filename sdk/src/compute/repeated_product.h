#pragma once

// Products of many matrices with one kernel, as a recurrent layer has them: it multiplies by the same kernel in each
// step. A back end may bring the kernel into an order of its own once, and not for each product.

#include <cstdint>
#include <memory>

namespace holdfast::compute {

class Backend;

// output [rows, outputs] = input [rows, inputs] x kernel [inputs, outputs], plus a bias [outputs] if there is one.
struct RepeatedProductShape {
  std::int64_t rows = 1;
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
  bool has_bias = false;
  bool is_transposed = false;  // the kernel is [outputs, inputs] in memory; without a bias
};

// The arrays do not overlap.
class RepeatedProductOperation {
 public:
  virtual ~RepeatedProductOperation() = default;
  // For the products from now on. The kernel must stay where it is, and as it is, until the last of them.
  virtual void set_kernel(const float* kernel) = 0;
  virtual void run(const float* input, const float* bias, float* output) = 0;
};

// The passes of a dense layer, which look at the kernel in each product.
std::unique_ptr<RepeatedProductOperation> repeated_dense(Backend& backend, const RepeatedProductShape& shape);

}  // namespace holdfast::compute
