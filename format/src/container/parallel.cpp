// Threads are started for each file and not kept: a save takes much longer than the start of its threads. This thread
// works too, so a system that starts no more threads only makes the work slower.
//
#include "container/parallel.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace holdfast::format {

namespace {

// A container may allow fewer cores than the machine has, so the mask of this process counts.
int core_count() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

void run_in_threads(int wanted, std::size_t most, const std::function<void()>& work,
                    const std::function<void()>& cancel) {
  const std::size_t threads = std::min(static_cast<std::size_t>(wanted > 0 ? wanted : core_count()), most);
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
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(guarded);
  } catch (const std::system_error&) {
    // The system starts no more threads: those that run do all the work.
  }
  guarded();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace holdfast::format
