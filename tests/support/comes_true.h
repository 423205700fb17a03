#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "holdfast/base/deadline.h"

namespace holdfast {

// How long tests wait for what other processes and threads do: far longer than that takes.
inline constexpr std::chrono::seconds kPatience(60);

// Looks again and again, until `condition` holds or the time of kPatience has passed.
inline bool comes_true(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(kPatience);
  while (!condition()) {
    if (deadline.has_passed()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace holdfast
