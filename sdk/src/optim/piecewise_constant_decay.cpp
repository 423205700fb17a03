#include "holdfast/optim/piecewise_constant_decay.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "optim/check_option.h"

namespace holdfast {
namespace {

template <class Number, class ToText>
std::string json_list(const std::vector<Number>& numbers, ToText to_text) {
  std::string list;
  for (const Number number : numbers) list += (list.empty() ? "" : ",") + to_text(number);
  return "[" + list + "]";
}

}  // namespace

PiecewiseConstantDecay::PiecewiseConstantDecay(std::vector<std::int64_t> boundaries, std::vector<float> values)
    : boundaries_(std::move(boundaries)), values_(std::move(values)) {
  if (values_.size() != boundaries_.size() + 1) {
    throw Error(ErrorCode::invalid_argument, "piecewise_constant_decay: " + std::to_string(boundaries_.size()) +
                                                 " boundaries part " + std::to_string(boundaries_.size() + 1) +
                                                 " values, not " + std::to_string(values_.size()));
  }
  for (const std::int64_t boundary : boundaries_) check_count("piecewise_constant_decay", "a boundary", boundary, 0);
  const auto falling = std::adjacent_find(boundaries_.begin(), boundaries_.end(), std::greater_equal());
  if (falling != boundaries_.end()) {
    throw Error(ErrorCode::invalid_argument, "piecewise_constant_decay: boundaries rise, but " +
                                                 std::to_string(falling[1]) + " follows " + std::to_string(*falling));
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    check_option("piecewise_constant_decay", "values[" + std::to_string(i) + "]", values_[i], values_[i] >= 0,
                 "not negative");
  }
}

std::string PiecewiseConstantDecay::configuration() const {
  return R"({"kind":"piecewise_constant_decay","boundaries":)" +
         json_list(boundaries_, [](std::int64_t boundary) { return std::to_string(boundary); }) + R"(,"values":)" +
         json_list(values_, json_number) + "}";
}

std::unique_ptr<LearningRateSchedule> PiecewiseConstantDecay::clone() const {
  return std::make_unique<PiecewiseConstantDecay>(*this);
}

float PiecewiseConstantDecay::rate_after(std::int64_t updates) const {
  const auto boundary = std::lower_bound(boundaries_.begin(), boundaries_.end(), updates);
  return values_[static_cast<std::size_t>(boundary - boundaries_.begin())];
}

}  // namespace holdfast
