// Weights are scaled in groups that share a norm. The group of an element follows from its place alone, so one walk
// over the elements in their order serves any axes, and each sum has one order.

#include "holdfast/nn/constraint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// backend.epsilon() of Keras, as a float.
constexpr double kConstraintEpsilon = 1e-7F;

struct ConstraintKind {
  std::string_view name;
  std::size_t numbers;
  bool has_axes;
};
// In the order of Constraint::Kind, without none.
constexpr std::array<ConstraintKind, 4> kConstraintKinds = {
    {{"max_norm", 1, true}, {"non_neg", 0, false}, {"unit_norm", 0, true}, {"min_max_norm", 3, true}}};

// Where the groups of weights that share a norm lie.
struct NormGroups {
  std::size_t count = 1;
  std::vector<std::size_t> strides;  // from a group to the next one along each axis; 0 within a group
};

std::size_t place_of_axis(std::int64_t axis, const Shape& shape) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.rank()) : axis);
}

NormGroups groups_of(const Shape& shape, const std::vector<std::int64_t>& axes) {
  std::vector<bool> is_summed(shape.rank());
  for (const std::int64_t axis : axes) is_summed[place_of_axis(axis, shape)] = true;
  NormGroups groups{.count = 1, .strides = std::vector<std::size_t>(shape.rank())};
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    if (is_summed[axis]) continue;
    groups.strides[axis] = groups.count;
    groups.count *= static_cast<std::size_t>(shape[axis]);
  }
  return groups;
}

// Calls use(element, group) for all elements in their order.
template <class Use>
void for_each_member(const Shape& shape, const NormGroups& groups, const Use& use) {
  const std::size_t last = shape.rank() - 1;
  const auto run = static_cast<std::size_t>(shape[last]);
  const auto elements = static_cast<std::size_t>(shape.element_count());
  // An odometer of all axes but the last one, whose elements are a run in memory.
  std::vector<std::int64_t> place(shape.rank());
  std::size_t group = 0;
  for (std::size_t begin = 0; begin < elements; begin += run) {
    for (std::size_t i = 0; i < run; ++i) use(begin + i, group + i * groups.strides[last]);
    for (std::size_t axis = last; axis-- > 0;) {
      group += groups.strides[axis];
      if (++place[axis] < shape[axis]) break;
      group -= groups.strides[axis] * static_cast<std::size_t>(shape[axis]);
      place[axis] = 0;
    }
  }
}

[[noreturn]] void refuse_name(std::string_view name) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no constraint {}; write it as max_norm(2), non_neg(), unit_norm() or "
                          "min_max_norm(0,1,1), with axes as in unit_norm([0,1])",
                          quoted_text(name, 100)));
}

// Nothing for a list that holds something else.
std::optional<std::vector<std::int64_t>> axes_from(const Json& list) {
  // More than any array has. It only keeps numbers small.
  constexpr std::int64_t kMostAxes = 64;
  std::vector<std::int64_t> axes;
  for (const Json& axis : list) {
    if (!axis.is_number_integer() || axis < -kMostAxes || axis >= kMostAxes) return std::nullopt;
    axes.push_back(axis.get<std::int64_t>());
  }
  return axes.empty() ? std::nullopt : std::optional(axes);
}

}  // namespace

Constraint::Constraint(Kind kind, std::vector<float> numbers, std::vector<std::int64_t> axes)
    : kind_(kind), numbers_(std::move(numbers)), axes_(std::move(axes)) {
  // Before the numbers are checked, since each refusal quotes the text. name() writes "?" for what is not finite.
  const std::string text = name();
  for (const float number : numbers_) {
    // Written so that a NaN is refused.
    if (number >= 0 && std::isfinite(number)) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("the constraint {} needs finite numbers of at least 0", text));
  }
  if (kind_ == Kind::min_max_norm && (numbers_[0] > numbers_[1] || numbers_[2] > 1)) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the constraint {} needs a minimum, a maximum that is not below it, and a rate of at most 1",
                    text));
  }
  std::vector<std::int64_t> sorted = axes_;
  std::ranges::sort(sorted);
  // -1 and the last axis are found to be the same by check(), which knows how many axes there are.
  const bool needs_axes = kConstraintKinds[static_cast<std::size_t>(kind_) - 1].has_axes;
  if (std::ranges::adjacent_find(sorted) == sorted.end() && axes_.empty() != needs_axes) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("the constraint {} needs axes, each of them once", text));
}

Constraint Constraint::max_norm(float max_value, std::vector<std::int64_t> axes) {
  return {Kind::max_norm, {max_value}, std::move(axes)};
}

Constraint Constraint::non_neg() {
  return {Kind::non_neg, {}, {}};
}

Constraint Constraint::unit_norm(std::vector<std::int64_t> axes) {
  return {Kind::unit_norm, {}, std::move(axes)};
}

Constraint Constraint::min_max_norm(float min_value, float max_value, float rate, std::vector<std::int64_t> axes) {
  return {Kind::min_max_norm, {min_value, max_value, rate}, std::move(axes)};
}

std::string Constraint::name() const {
  if (is_none()) return {};
  std::vector<std::string> parts;
  for (const float number : numbers_) parts.push_back(std::isfinite(number) ? json_number(number) : "?");
  if (!axes_.empty() && axes_ != std::vector<std::int64_t>{0})
    parts.push_back(fmt::format("[{}]", fmt::join(axes_, ",")));
  return fmt::format("{}({})", kConstraintKinds[static_cast<std::size_t>(kind_) - 1].name, fmt::join(parts, ","));
}

// The numbers and axes are a list of JSON without its brackets.
Constraint Constraint::from_name(std::string_view name) {
  constexpr std::size_t kLongest = 200;
  const std::size_t open = name.find('(');
  if (name.size() > kLongest || open == std::string_view::npos || !name.ends_with(')')) refuse_name(name);
  const auto kind = std::ranges::find(kConstraintKinds, name.substr(0, open), &ConstraintKind::name);
  Json list = Json::parse(fmt::format("[{}]", name.substr(open + 1, name.size() - open - 2)), nullptr, false);
  if (kind == kConstraintKinds.end() || !list.is_array()) refuse_name(name);
  std::vector<std::int64_t> axes;
  // Keras's default, which name() leaves out.
  if (kind->has_axes) axes = {0};
  if (!list.empty() && list.back().is_array() && kind->has_axes) {
    const auto given = axes_from(list.back());
    if (!given) refuse_name(name);
    axes = *given;
    list.erase(list.size() - 1);
  }
  std::vector<float> numbers;
  for (const Json& number : list) {
    if (!number.is_number()) refuse_name(name);
    numbers.push_back(number.get<float>());
  }
  if (numbers.size() != kind->numbers) refuse_name(name);
  return {static_cast<Kind>(kind - kConstraintKinds.begin() + 1), std::move(numbers), std::move(axes)};
}

void Constraint::check(const Shape& shape) const {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  std::vector<std::size_t> places;
  for (const std::int64_t axis : axes_) {
    if (axis >= -rank && axis < rank) places.push_back(place_of_axis(axis, shape));
  }
  std::ranges::sort(places);
  if (places.size() == axes_.size() && std::ranges::adjacent_find(places) == places.end()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("its weights {} cannot have the constraint {}, which needs different axes from {} to {}",
                          shape.to_string(), name(), -rank, rank - 1));
}

// What weights of this norm are multiplied by. The formulas of keras.constraints. Epsilon is added to the norm, so a
// group of zeros stays zeros.
double Constraint::factor_of(double norm) const {
  double wanted = 1;
  if (kind_ == Kind::max_norm) wanted = std::min<double>(norm, numbers_[0]);
  if (kind_ == Kind::min_max_norm) {
    const double rate = numbers_[2];
    wanted = rate * std::clamp<double>(norm, numbers_[0], numbers_[1]) + (1 - rate) * norm;
  }
  return wanted / (kConstraintEpsilon + norm);
}

void Constraint::apply(const Shape& shape, std::span<float> weights) const {
  HOLDFAST_ASSERT(weights.size() == static_cast<std::size_t>(shape.element_count()));
  if (is_none() || weights.empty()) return;
  if (kind_ == Kind::non_neg) {
    // A NaN stays one, as in all other constraints.
    for (float& weight : weights) weight = weight < 0 ? 0 : weight;
    return;
  }
  // Two walks: the norm of a group is complete only after the last of its elements, which may lie anywhere.
  const NormGroups groups = groups_of(shape, axes_);
  std::vector<double> factors(groups.count);
  for_each_member(shape, groups, [&](std::size_t element, std::size_t group) {
    factors[group] += static_cast<double>(weights[element]) * weights[element];
  });
  for (double& factor : factors) factor = factor_of(std::sqrt(factor));
  for_each_member(shape, groups, [&](std::size_t element, std::size_t group) {
    weights[element] = static_cast<float>(weights[element] * factors[group]);
  });
}

}  // namespace holdfast
