#pragma once

// Runs the same work in several threads.

#include <functional>

namespace holdfast::format {

// `wanted`, or the number of cores that this process may use when `wanted` is 0. At least 1.
int thread_count(int wanted);

// Calls work() in `threads` threads, including this one, and waits for all of them. When one throws,
// `cancel` is called once, so that the others do not wait for it; the first exception is then rethrown.
void run_in_threads(int threads, const std::function<void()>& work, const std::function<void()>& cancel);

}  // namespace holdfast::format
