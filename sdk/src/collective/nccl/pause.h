#pragma once

#include <chrono>
#include <thread>

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

}  // namespace holdfast
