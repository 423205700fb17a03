#pragma once

// What the command's exit code says to a script.

#include "holdfast/base/error.h"

namespace holdfast::cli {

inline constexpr int kWhole = 0;
inline constexpr int kDamaged = 1;
inline constexpr int kNotDone =
    2;  // wrong usage, a missing or unreadable file, a newer format: nothing is known of the file

inline int exit_code(const Error& error) {
  return error.code() == ErrorCode::invalid_file ? kDamaged : kNotDone;
}

}  // namespace holdfast::cli
