#pragma once

// Layers once more, in double and plain loops, written from the field's definitions and not from the library: what
// tests compare with. Images are [sample, row, column, channel].

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::reference {

using Values = std::vector<double>;

struct Images {
  std::int64_t samples = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t channels = 1;
};

struct Sliding {
  std::int64_t rows = 1;  // of the window
  std::int64_t columns = 1;
  std::int64_t row_stride = 1;
  std::int64_t column_stride = 1;
  bool is_padded = false;  // "same", else "valid"
};

// Kernel [inputs, outputs]; no bias when it is empty.
Values dense(const Values& input, std::int64_t inputs, const Values& kernel, const Values& bias, std::int64_t outputs);
// Kernel [row, column, channel, filter]; no bias when it is empty.
Values convolution(const Values& input, const Images& shape, const Values& kernel, const Values& bias,
                   std::int64_t filters, const Sliding& sliding);
Values max_pooling(const Values& input, const Images& shape, const Sliding& sliding);
Values average_pooling(const Values& input, const Images& shape, const Sliding& sliding);
// `name` as Keras has it; softmax over groups of `channels`.
Values activation(const std::string& name, const Values& input, std::int64_t channels);

struct Statistics {
  Values mean;
  Values variance;  // biased
};

// Per channel, the last axis.
Statistics statistics(const Values& input, std::int64_t channels);
Values batch_normalization(const Values& input, const Statistics& statistics, const Values& gamma, const Values& beta,
                           double epsilon);

}  // namespace holdfast::reference
