#pragma once

#include <chrono>
#include <thread>

#include "holdfast/base/deadline.h"

namespace holdfast {

// The pause between two polls of a device or of NCCL, which cannot wake a thread. The first polls follow each other
// closely, because most waits are shorter than a system call that sleeps.
class Pause {
 public:
  void operator()() {
    if (spins_ < kSpins) {
      ++spins_;
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  static constexpr int kSpins = 2000;  // about a millisecond
  int spins_ = 0;
};

// Polls until `is_done` or the deadline. Returns whether it is done.
template <typename IsDone>
bool is_done_by(Deadline deadline, const IsDone& is_done) {
  for (Pause pause; !is_done(); pause()) {
    if (deadline.has_passed()) return false;
  }
  return true;
}

}  // namespace holdfast
