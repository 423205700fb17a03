#include "compute/array_kernels.h"

#include <fmt/format.h>

#include <array>

#include "holdfast/base/error.h"

namespace holdfast::compute {

// The names stand in the order of the enumeration. A new function needs its name at the same place, or graphs of
// savepoints would get another function.
static constexpr std::array<std::string_view, 30> kNames = {"copy",
                                                            "negative",
                                                            "absolute",
                                                            "square",
                                                            "square_root",
                                                            "reciprocal_root",
                                                            "exponential",
                                                            "logarithm",
                                                            "relu",
                                                            "sigmoid",
                                                            "tanh",
                                                            "gelu",
                                                            "gelu_tanh",
                                                            "silu",
                                                            "softplus",
                                                            "gelu_slope",
                                                            "gelu_tanh_slope",
                                                            "silu_slope",
                                                            "sign",
                                                            "add",
                                                            "subtract",
                                                            "multiply",
                                                            "divide",
                                                            "power",
                                                            "minimum",
                                                            "maximum",
                                                            "less",
                                                            "less_equal",
                                                            "equal",
                                                            "select"};

// Graphs in savepoints have these names, so they never change. The numbers of the enumeration may.
std::string_view name_of(ElementFunction function) {
  return kNames.at(static_cast<std::size_t>(function));
}

ElementFunction element_function_from_name(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<ElementFunction>(i);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a function of elements", text));
}

std::size_t operand_count(ElementFunction function) {
  if (function == ElementFunction::select) return 3;
  // The enumeration has functions of one operand first, then those of two, and `select` last.
  return function >= ElementFunction::add ? 2 : 1;
}

}  // namespace holdfast::compute
