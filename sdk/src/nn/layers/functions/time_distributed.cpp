#include "holdfast/nn/time_distributed.h"

#include "holdfast/base/error.h"

namespace holdfast {

Value step_of(const Value& x, std::int64_t index) {
  if (x.shape().rank() == 0) {
    throw Error(ErrorCode::invalid_argument,
                "time_distributed() takes a value with an axis of steps, and this one has a number for each sample");
  }
  const auto& extents = x.shape().extents();
  return reshape(slice(x, 0, index, index + 1), {extents.begin() + 1, extents.end()});
}

Value stacked_steps(const std::vector<Value>& steps) {
  std::vector<Value> rows;
  for (const Value& step : steps) {
    std::vector<std::int64_t> extents = step.shape().extents();
    extents.insert(extents.begin(), 1);
    rows.push_back(reshape(step, extents));
  }
  // One concatenation of all steps: one for each step would copy those before it again and again.
  return rows.size() == 1 ? rows.front() : concatenate(rows, 0);
}

}  // namespace holdfast
