#pragma once

#include <condition_variable>
#include <mutex>

namespace holdfast {

// Holds threads until the test opens it.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    is_waiting_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
  }
  void wait_for_arrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_waiting_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_waiting_ = false;
  bool is_open_ = false;
};

}  // namespace holdfast
