#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "holdfast/base/deadline.h"

namespace holdfast {

// How long tests wait for other processes and threads: far longer than these take.
inline constexpr std::chrono::seconds kPatience(240);

// Evaluates `condition` again and again until it holds. Returns false when kPatience has passed.
inline bool comes_true(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(kPatience);
  while (!condition()) {
    if (deadline.has_passed()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace holdfast
