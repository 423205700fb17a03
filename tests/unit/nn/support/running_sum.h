#pragma once

// An operation of a test's own, whose gradient is another operation of its own.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/nn/custom_operation.h"

namespace holdfast {

// y[i] = x[0] + ... + x[i] along the last axis, or from the other end.
class RunningSum final : public CustomOperation {
 public:
  explicit RunningSum(bool is_reversed = false) : is_reversed_(is_reversed) {}
  std::string name() const override { return "test.running_sum"; }
  std::vector<ValueSpec> infer(std::span<const ValueSpec> inputs) const override { return {inputs[0]}; }
  void run(const OperationArrays& arrays) const override {
    const std::span<const float> x = arrays.inputs[0].floats();
    const std::span<float> y = arrays.outputs[0].floats();
    const auto length = static_cast<std::size_t>(arrays.inputs[0].spec().shape.extents().back());
    for (std::size_t row = 0; row < x.size(); row += length) {
      float sum = 0;
      for (std::size_t i = 0; i < length; ++i) {
        const std::size_t at = row + (is_reversed_ ? length - 1 - i : i);
        y[at] = sum += x[at];
      }
    }
  }
  std::vector<std::optional<Value>> gradient(const OperationGradient& at) const override {
    return {apply_custom(std::make_shared<const RunningSum>(!is_reversed_), {*at.output_gradients[0]})[0]};
  }

 private:
  const bool is_reversed_;
};

inline Value running_sum(const Value& x) {
  return apply_custom(std::make_shared<const RunningSum>(), {x})[0];
}

}  // namespace holdfast
