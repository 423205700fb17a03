#pragma once

// The exit codes of the command, for scripts.

#include "holdfast/base/error.h"

namespace holdfast::cli {

// As with diff(1): 0 means equal, 1 different, and 2 that there is no answer.
inline constexpr int kDone = 0;         // whole, equal, written
inline constexpr int kDamaged = 1;      // verify, prune, chaos
inline constexpr int kDifferent = 1;    // diff
inline constexpr int kCannotTrain = 1;  // doctor
inline constexpr int kNotDone = 2;      // wrong usage, or a file is missing, cannot be read or has a newer format

// A script may delete a file at kDamaged, so only the content of a file can give it.
inline int verify_exit_code(const Error& error) {
  return error.code() == ErrorCode::invalid_file ? kDamaged : kNotDone;
}

}  // namespace holdfast::cli
