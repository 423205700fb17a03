#pragma once

// The length of a sample, which stands in its input "length".

#include <cstdint>

#include "data/stages/stage.h"

namespace holdfast {

inline constexpr const char* kLengthName = "length";

class SampleLength {
 public:
  // Throws Error{invalid_argument} unless samples have an input "length" of one i32 or i64. `stage` is for messages.
  SampleLength(const char* stage, const SampleLayouts& layouts);

  std::size_t index() const { return index_; }  // among the inputs
  std::int64_t of(const ArrayRow& inputs) const;

 private:
  std::size_t index_ = 0;
  DType dtype_ = DType::i32;
};

}  // namespace holdfast
