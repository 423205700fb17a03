#pragma once

#include <cerrno>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// system_error() of a file operation, with advice on what to do about it.
Error file_error(int error_number, const std::string& sentence);

// Repeats a system call that a signal interrupted. The limit ends a loop that no real series of signals would cause.
template <typename Call>
auto uninterrupted(Call call) {
  constexpr int kAttempts = 1000;
  auto result = call();
  for (int attempt = 1; result < 0 && errno == EINTR && attempt < kAttempts; ++attempt) result = call();
  return result;
}

}  // namespace holdfast
