#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// The sentence with which a call refuses its arguments; empty if it does not.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::invalid_file);
    return error.what();
  }
  return {};
}

}  // namespace holdfast
