#pragma once

// Whether a device was given up: something hangs on it, and will until the process ends. To free memory, to take a
// registration back and to destroy some of the libraries' handles waits for all that the device has to do, without a
// deadline. So whoever gives such things back looks here first, and leaves them to the end of the process.

#include <atomic>
#include <memory>

namespace holdfast::compute {

// Copies are of the same device. For any thread.
class GivenUp {
 public:
  // For good.
  void set() const { *is_set_ = true; }
  bool is_set() const { return *is_set_; }

 private:
  std::shared_ptr<std::atomic<bool>> is_set_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace holdfast::compute
