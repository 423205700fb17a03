#pragma once

#include "compute/array_kernels.h"

namespace holdfast::compute {

// Where results are kept while a program runs. A result whose last reader has run, or runs now, gives its place away,
// so that a cache holds all that are alive. Outputs keep theirs to the end.
struct ResultPlaces {
  std::uint8_t of[ElementProgram::kMaximumInstructions]{};  // by instruction
};
ResultPlaces result_places(const ElementProgram& program);

}  // namespace holdfast::compute
