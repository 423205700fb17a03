#pragma once

// Fixes the number of OpenMP threads for the calling thread, as long as the object lives. Each thread has its own
// setting, so it is made where work starts and not once for the process. Dynamic teams are off: OMP_DYNAMIC could make
// a team smaller, which would change sums.

#include <omp.h>

namespace holdfast::compute {

class ThreadCount {
 public:
  explicit ThreadCount(int threads) : threads_before_(omp_get_max_threads()), dynamic_before_(omp_get_dynamic()) {
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
  }
  ~ThreadCount() {
    omp_set_num_threads(threads_before_);
    omp_set_dynamic(dynamic_before_);
  }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int threads_before_;
  int dynamic_before_;
};

}  // namespace holdfast::compute
