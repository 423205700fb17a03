#include "data/lengths/sample_length.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {

SampleLength::SampleLength(const char* stage, const SampleLayouts& layouts) {
  const std::span<const ArraySpec> inputs = layouts.inputs.arrays();
  const auto found = std::ranges::find(inputs, kLengthName, &ArraySpec::name);
  // The name alone is not enough: an input "length" of a program's own may be a measurement of f32.
  const bool is_length = found != inputs.end() && found->shape.element_count() == 1 &&
                         (found->dtype == DType::i32 || found->dtype == DType::i64);
  if (!is_length) {
    std::vector<std::string> texts;
    for (const ArraySpec& input : inputs) texts.push_back(input.to_string());
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}() reads how long a sample is from an input \"length\" of one i32 or i64, and the inputs "
                    "are {}; make samples with from_sequences(), or add such an input",
                    stage, fmt::join(texts, ", ")));
  }
  index_ = static_cast<std::size_t>(found - inputs.begin());
  dtype_ = found->dtype;
}

// Not checked here: what a length may be differs from stage to stage.
std::int64_t SampleLength::of(const ArrayRow& inputs) const {
  return dtype_ == DType::i32 ? inputs.elements<std::int32_t>(index_)[0] : inputs.elements<std::int64_t>(index_)[0];
}

}  // namespace holdfast
