#pragma once

// Whether a file may still be written. It keeps the rule of File that nothing is tried again after the
// first failure.

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <optional>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// After a failed fsync() Linux may have dropped the pages that were not written. A second fsync()
// would then report success for bytes that never reached the disk. So the first failure is final.
//
// May be used from several threads at once.
class FileHealth {
 public:
  // Runs `action`. Throws instead when an earlier action failed. `path` is named in the sentence.
  template <typename Action>
  void attempt(const std::string& path, const Action& action) {
    require_alive(path);
    try {
      action();
    } catch (const Error& failure) {
      remember(failure);
      throw;
    } catch (const std::exception& failure) {
      remember(Error(ErrorCode::input_output, failure.what()));
      throw;
    }
  }

 private:
  void require_alive(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (!first_failure_) return;
    throw Error(
        first_failure_->code(),
        fmt::format("{} is given up after an earlier failure; write it again under another name; the failure was: {}",
                    path, first_failure_->what()));
  }

  void remember(const Error& failure) {
    const std::lock_guard lock(mutex_);
    if (!first_failure_) first_failure_ = failure;
  }

  std::mutex mutex_;
  std::optional<Error> first_failure_;  // guarded by mutex_
};

}  // namespace holdfast
