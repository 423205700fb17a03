#pragma once

// The exception of the first task in order that failed, so that it does not depend on the threads which is thrown. Any
// thread.
//
//   pool.run(count, [&](int, int index) {
//     if (failure.is_before(index)) return;
//     try { ... } catch (...) { failure.note(index); }
//   });
//   failure.rethrow_if_there();

#include <cstddef>
#include <exception>
#include <mutex>

namespace holdfast {

class FirstFailure {
 public:
  // Within the handler of an exception.
  void note(std::size_t task) {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr && task > task_) return;
    task_ = task;
    failure_ = std::current_exception();
  }
  bool is_before(std::size_t task) const {
    const std::lock_guard lock(mutex_);
    return failure_ != nullptr && task_ < task;
  }
  void rethrow_if_there() {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr failure_;  // guarded by mutex_
  std::size_t task_ = 0;        // guarded by mutex_
};

}  // namespace holdfast
