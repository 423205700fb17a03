#pragma once

namespace holdfast::format {

// What the names of a savepoint's arrays begin with.
inline constexpr const char* kModelPrefix = "model/";
inline constexpr const char* kOptimizerPrefix = "optimizer/";

}  // namespace holdfast::format
