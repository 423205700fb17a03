#include "container/parallel.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace holdfast::format {

int thread_count(int wanted) {
  if (wanted > 0) return wanted;
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

void run_in_threads(int threads, const std::function<void()>& work, const std::function<void()>& cancel) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (failure) return;
      failure = std::current_exception();
      cancel();
    }
  };
  std::vector<std::thread> others;
  try {
    for (int i = 1; i < threads; ++i) others.emplace_back(guarded);
  } catch (const std::system_error&) {
    // The system starts no more threads: those that run do all the work.
  }
  guarded();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace holdfast::format
