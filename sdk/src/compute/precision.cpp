#include "holdfast/compute/precision.h"

#include <fmt/format.h>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// The description of a CUDA back end has this name, and a resume compares that. So the names never change.
std::string_view name(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return "f32";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
  }
  HOLDFAST_ASSERT(false);
}

Precision precision_from_name(std::string_view text) {
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    if (name(precision) == text) return precision;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a precision; choose f32, tf32 or bf16", text));
}

}  // namespace holdfast
