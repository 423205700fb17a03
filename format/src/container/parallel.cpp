// Threads are started for each file and not kept: a save takes much longer than the start of its threads. This thread
// works too, so a system that starts no more threads only makes the work slower.
//
#include "container/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "holdfast/base/cores.h"

namespace holdfast::format {

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
