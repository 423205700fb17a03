#pragma once

// The polynomial iteration that makes a matrix nearly orthogonal, for matrices of one shape.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/backend.h"

namespace holdfast {

// The factors of the quintic polynomial, and how often it is applied.
struct NewtonSchulzOptions {
  float a = 0;
  float b = 0;
  float c = 0;
  std::int64_t steps = 0;
};

// One thread at a time may use it. Its products run on one thread, so its bits depend on the numbers and the shape
// alone.
class NewtonSchulz {
 public:
  NewtonSchulz(std::int64_t rows, std::int64_t columns);

  // Replaces a matrix, row-major, by the result of the iteration, after dividing it by its norm plus 1e-7.
  void run(const NewtonSchulzOptions& options, std::span<float> matrix);

 private:
  void iterate(const NewtonSchulzOptions& options);

  const bool is_transposed_;  // a matrix of more columns than rows
  const std::int64_t longer_;
  const std::int64_t shorter_;
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<compute::DenseOperation> gram_product_;    // [shorter, longer] x [longer, shorter]
  std::unique_ptr<compute::DenseOperation> square_product_;  // [shorter, shorter] x [shorter, shorter]
  std::unique_ptr<compute::DenseOperation> tall_product_;    // [longer, shorter] x [shorter, shorter]
  std::vector<float> tall_;                                  // [longer, shorter]
  std::vector<float> other_;                                 // of the same size
  std::vector<float> gram_;                                  // [shorter, shorter], as the next one
  std::vector<float> polynomial_;
};

}  // namespace holdfast
