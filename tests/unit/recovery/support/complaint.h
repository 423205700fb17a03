#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast::recovery {

// The sentence of the Error that `action` throws, or "no complaint".
inline std::string complaint_about(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "no complaint";
}

}  // namespace holdfast::recovery
