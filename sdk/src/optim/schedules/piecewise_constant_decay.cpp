// As in Keras: a constant rate up to each boundary. The checks are strict, since a mistake here shows only after hours.

#include "holdfast/optim/piecewise_constant_decay.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/json_object.h"
#include "holdfast/base/error.h"
#include "optim/check_option.h"

namespace holdfast {

PiecewiseConstantDecay::PiecewiseConstantDecay(std::vector<std::int64_t> boundaries, std::vector<float> values)
    : boundaries_(std::move(boundaries)), values_(std::move(values)) {
  if (values_.size() != boundaries_.size() + 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("piecewise_constant_decay: {} boundaries need {} values, not {}", boundaries_.size(),
                            boundaries_.size() + 1, values_.size()));
  }
  for (const std::int64_t boundary : boundaries_) check_count("piecewise_constant_decay", "a boundary", boundary, 0);
  // The value between two equal boundaries would never be used.
  const auto falling = std::adjacent_find(boundaries_.begin(), boundaries_.end(), std::greater_equal());
  if (falling != boundaries_.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("piecewise_constant_decay: boundaries must rise, but {} follows {}", falling[1], *falling));
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    check_option("piecewise_constant_decay", fmt::format("values[{}]", i), values_[i], values_[i] >= 0, "not negative");
  }
}

std::string PiecewiseConstantDecay::configuration() const {
  return JsonObject("piecewise_constant_decay").integers("boundaries", boundaries_).numbers("values", values_).text();
}

float PiecewiseConstantDecay::rate_after(std::int64_t updates) const {
  // A value holds up to and including its boundary, as in Keras.
  const auto boundary = std::lower_bound(boundaries_.begin(), boundaries_.end(), updates);
  return values_[static_cast<std::size_t>(boundary - boundaries_.begin())];
}

}  // namespace holdfast
