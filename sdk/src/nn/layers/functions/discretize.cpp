#include "holdfast/nn/discretize.h"

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"

namespace holdfast {
namespace {

// Each boundary is a comparison and a difference in the graph, so a long list would make a slow model.
constexpr std::size_t kMostBoundaries = 256;

void check_discretized(const Value& x, const std::vector<float>& boundaries) {
  const auto refuse = [](const std::string& reason) {
    throw Error(ErrorCode::invalid_argument, fmt::format("discretize(): {}", reason));
  };
  if (x.dtype() != DType::f32) refuse(fmt::format("it takes f32, and the value is {}", name(x.dtype())));
  if (boundaries.empty() || boundaries.size() > kMostBoundaries) {
    refuse(fmt::format("it takes 1 to {} boundaries, not {}", kMostBoundaries, boundaries.size()));
  }
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    const bool rises = i == 0 || boundaries[i] > boundaries[i - 1];
    if (std::isfinite(boundaries[i]) && rises) continue;
    refuse(fmt::format("boundaries are finite and rise, and number {} is {}", i, boundaries[i]));
  }
}

// Whether x is not below the boundary, which a NaN is not: 1 or 0.
Value is_beyond(const Value& x, float boundary) {
  return 1.0F - less(x, boundary);
}

}  // namespace

Value discretize(const Value& x, const std::vector<float>& boundaries) {
  check_discretized(x, boundaries);
  std::vector<std::int64_t> extents = x.shape().extents();
  if (extents.empty() || extents.back() != 1) extents.push_back(1);
  const Value column = reshape(x, extents);
  std::vector<Value> beyond;
  for (const float boundary : boundaries) beyond.push_back(is_beyond(column, boundary));
  // A bin is the difference of two comparisons. They are 1 up to a boundary, so the difference is 1 in one bin.
  std::vector<Value> bins{1.0F - beyond[0]};
  for (std::size_t i = 1; i < beyond.size(); ++i) bins.push_back(beyond[i - 1] - beyond[i]);
  bins.push_back(beyond.back());
  return concatenate(bins);
}

}  // namespace holdfast
