#pragma once

namespace holdfast::format {

// The prefixes of the arrays' names in a savepoint.
inline constexpr const char* kModelPrefix = "model/";
inline constexpr const char* kOptimizerPrefix = "optimizer/";

}  // namespace holdfast::format
