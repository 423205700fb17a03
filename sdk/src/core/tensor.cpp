// A tensor owns its values; samples are views of them. Sizes are checked at construction, so views need no check.

#include "holdfast/core/tensor.h"

#include <fmt/format.h>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {

Tensor::Tensor(Shape shape) : shape_(std::move(shape)), values_(static_cast<std::size_t>(shape_.element_count())) {}

Tensor::Tensor(Shape shape, std::vector<float> values) : shape_(std::move(shape)), values_(std::move(values)) {
  if (static_cast<std::int64_t>(values_.size()) != shape_.element_count()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("a tensor of shape {} holds {} values, not {}",
                                                         shape_.to_string(), shape_.element_count(), values_.size()));
  }
}

std::span<const float> Tensor::sample(std::int64_t index) const& {
  HOLDFAST_ASSERT(shape_.rank() > 0 && index >= 0 && index < shape_[0]);
  const auto count = static_cast<std::size_t>(shape_.element_count() / shape_[0]);
  return values().subspan(static_cast<std::size_t>(index) * count, count);
}

std::span<float> Tensor::sample(std::int64_t index) & {
  const std::span<const float> sample = std::as_const(*this).sample(index);
  return {const_cast<float*>(sample.data()), sample.size()};
}

// A view of a temporary would outlive it, so its sample is copied.
std::vector<float> Tensor::sample(std::int64_t index) && {
  const std::span<const float> sample = std::as_const(*this).sample(index);
  return {sample.begin(), sample.end()};
}

}  // namespace holdfast
