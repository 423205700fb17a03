#pragma once

// What the command's exit code says to a script.

#include "holdfast/base/error.h"

namespace holdfast::cli {

inline constexpr int kDone = 0;         // whole, equal, written
inline constexpr int kDamaged = 1;      // of verify
inline constexpr int kDifferent = 1;    // of diff
inline constexpr int kCannotTrain = 1;  // of doctor
inline constexpr int kNotDone = 2;  // wrong usage, or a file that is missing, cannot be read or is of a newer format

inline int verify_exit_code(const Error& error) {
  return error.code() == ErrorCode::invalid_file ? kDamaged : kNotDone;
}

}  // namespace holdfast::cli
