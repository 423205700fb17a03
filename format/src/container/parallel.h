#pragma once

// The same work in several threads.

#include <functional>

namespace holdfast::format {

// The cores that this process may use, when `wanted` is 0; at least 1.
int thread_count(int wanted);

// Calls work() in `threads` threads, this one among them, and waits for all. The first exception is rethrown; before
// that, `cancel` is called once, so that the others do not wait for the one that failed.
void run_in_threads(int threads, const std::function<void()>& work, const std::function<void()>& cancel);

}  // namespace holdfast::format
