// A tensor owns its values; samples are views of them. Sizes are checked at construction, so views need no check. Its
// type is checked where elements are asked for. Bits of one type are numbers in any other, so nothing later would show
// the mistake. See docs/decisions/loading.md.

#include "holdfast/core/tensor.h"

#include <fmt/format.h>
#include <utility>

#include "core/huge_pages.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// Zeros. Samples of a large tensor are read in random order, so it has huge pages.
template <typename T>
void resize_with_huge_pages(std::vector<T>& elements, std::size_t count) {
  elements.reserve(count);
  ask_for_huge_pages(elements.data(), count * sizeof(T));
  elements.resize(count);
}

}  // namespace

Tensor::Tensor(Shape shape) : Tensor(std::move(shape), DType::f32) {}

Tensor::Tensor(Shape shape, std::vector<float> values) : shape_(std::move(shape)), values_(std::move(values)) {
  require_count(values_.size());
}

Tensor::Tensor(Shape shape, DType dtype) : shape_(std::move(shape)), dtype_(dtype) {
  if (!is_sample_type(dtype)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a tensor cannot hold {}; it holds f32, bf16, i32, i64, u8, u16 or boolean", name(dtype)));
  }
  const auto elements = static_cast<std::size_t>(shape_.element_count());
  if (dtype == DType::f32) {
    // Floats have a vector of their own, so values() can give it out without a cast. A tensor uses one of the two.
    resize_with_huge_pages(values_, elements);
  } else {
    resize_with_huge_pages(bytes_, elements * size_bytes(dtype));
  }
}

void Tensor::require_count(std::size_t given) const {
  if (static_cast<std::int64_t>(given) == shape_.element_count()) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("a tensor of shape {} holds {} values, not {}",
                                                       shape_.to_string(), shape_.element_count(), given));
}

// A tensor of another type has no floats. An empty vector instead of an error would look like a tensor without samples.
std::vector<float>& Tensor::checked_values() {
  if (dtype_ == DType::f32) return values_;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("values() is for tensors of f32, but this one of shape {} holds {}; read it with elements<T>()",
                  shape_.to_string(), name(dtype_)));
}

std::span<std::byte> Tensor::bytes() & {
  if (dtype_ == DType::f32) return std::as_writable_bytes(std::span(values_));
  return bytes_;
}

std::span<const std::byte> Tensor::bytes() const& {
  // The other overload changes nothing, so the cast only saves a second copy of the rule.
  return const_cast<Tensor&>(*this).bytes();
}

std::span<std::byte> Tensor::bytes_of(DType asked) {
  if (dtype_ == asked) return bytes();
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a tensor of shape {} holds {}, but was asked for elements of {}; ask for its own type",
                          shape_.to_string(), name(dtype_), name(asked)));
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
