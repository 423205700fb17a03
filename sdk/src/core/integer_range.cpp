#include "core/integer_range.h"

#include <fmt/format.h>

#include <limits>

#include "holdfast/base/error.h"

namespace holdfast {

void check_integer_range(std::span<const std::int64_t> elements, const ArraySpec& spec, std::size_t array,
                         std::int64_t position) {
  for (std::size_t index = 0; index < elements.size(); ++index) {
    const std::int64_t value = elements[index];
    if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
      continue;
    }
    throw Error(ErrorCode::invalid_argument,
                fmt::format("element {} of array {} ({}) of sample {} is {}, but models compute with integers of 32 "
                            "bits; number the ids anew",
                            index, array, spec.to_string(), position, value));
  }
}

void check_integer_range(const Tensor& tensor, const ArraySpec& spec, std::size_t array) {
  if (tensor.dtype() != DType::i64) return;
  const std::span<const std::int64_t> elements = tensor.elements<std::int64_t>();
  const auto of_sample = static_cast<std::size_t>(spec.shape.element_count());
  for (std::int64_t sample = 0; sample < tensor.shape()[0]; ++sample) {
    check_integer_range(elements.subspan(static_cast<std::size_t>(sample) * of_sample, of_sample), spec, array, sample);
  }
}

}  // namespace holdfast
