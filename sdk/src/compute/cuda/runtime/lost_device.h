#pragma once

// Whether a device is lost to this process: a kernel or a call on it hangs, and will until the process ends.
//
// Freeing device memory, unpinning host memory and destroying some handles of the libraries wait for all work of the
// device, without a deadline. A destructor that would do so checks this flag first, and leaves the resource to the end
// of the process. See docs/decisions/failing-devices.md.

#include <atomic>
#include <memory>

namespace holdfast::compute {

// Copies share one flag. Any thread.
class LostDeviceFlag {
 public:
  // Sets the flag, which cannot be cleared.
  void set() const { *is_set_ = true; }
  bool is_set() const { return *is_set_; }

 private:
  std::shared_ptr<std::atomic<bool>> is_set_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace holdfast::compute
