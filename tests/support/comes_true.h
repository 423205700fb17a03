#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "holdfast/base/deadline.h"

namespace holdfast {

// Looks again and again, until `condition` holds or a minute has passed: for what other processes do.
inline bool comes_true(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(std::chrono::minutes(1));
  while (!condition()) {
    if (deadline.has_passed()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace holdfast
