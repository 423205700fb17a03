#pragma once

#include <chrono>
#include <thread>

namespace holdfast {

// Between two looks at something that no thread can be woken for: a device, NCCL's state. The first ones follow each
// other closely, for most waits are shorter than a system call that sleeps.
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
