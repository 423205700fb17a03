#pragma once

// The error that an action throws, for tests of failures.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// The code of the Error that `action` throws. Fails the test when it throws nothing.
inline ErrorCode code_thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::unsupported;
}

// Its sentence.
inline std::string sentence_thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace holdfast
