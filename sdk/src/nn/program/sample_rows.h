#pragma once

// Outputs and targets of a loss or metric, seen as one row a sample.

#include <cstdint>
#include <span>
#include <string>

namespace holdfast {

struct SampleRows {
  std::size_t count = 0;
  std::size_t output_elements = 0;  // a row
  std::span<const float> outputs, targets;

  std::span<const float> output(std::size_t row) const {
    return outputs.subspan(row * output_elements, output_elements);
  }
  // Only where targets look like outputs.
  std::span<const float> target(std::size_t row) const {
    return targets.subspan(row * output_elements, output_elements);
  }
  // The row's part of a gradient that is as long as the outputs; empty where the gradient is.
  std::span<float> gradient(std::span<float> all, std::size_t row) const {
    return all.empty() ? all : all.subspan(row * output_elements, output_elements);
  }
};

// The loss or metric that asks, for messages of errors. Its name is made for a message alone: to make it allocates, and
// a step must not.
class NamedFunction {
 public:
  template <class Named>
  NamedFunction(const Named& named)
      : named_(&named),
        name_([](const void* object) { return std::string(static_cast<const Named*>(object)->name()); }) {}

  std::string name() const { return name_(named_); }

 private:
  const void* named_;
  std::string (*name_)(const void* object);
};

// Rows whose targets are single numbers. Throws Error{invalid_argument} that begins with the name of `what` when the
// spans do not divide into `samples` rows, or when rows of outputs are empty.
SampleRows rows_with_scalar_targets(const NamedFunction& what, std::span<const float> outputs,
                                    std::span<const float> targets, std::int64_t samples);
// Rows whose targets look like their outputs.
SampleRows rows_with_equal_targets(const NamedFunction& what, std::span<const float> outputs,
                                   std::span<const float> targets, std::int64_t samples);

// Throws Error{invalid_argument} unless `gradient` is empty or as long as the outputs.
void check_gradient(const NamedFunction& what, const SampleRows& rows, std::span<const float> gradient);

// The position of a row's largest element, the first of equals. `row` is not empty.
std::size_t index_of_largest(std::span<const float> row);

}  // namespace holdfast
