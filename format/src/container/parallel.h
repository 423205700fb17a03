#pragma once

// Runs the same work in several threads.

#include <atomic>
#include <cstddef>
#include <functional>

namespace holdfast::format {

// Calls work() in `wanted` threads, or in as many as this process may use cores when `wanted` is 0, but in at most
// `most`. This thread is one of them. Waits for all. When one throws, `cancel` is called once, so that the others do
// not wait for it; the first exception is then rethrown.
void run_in_threads(int wanted, std::size_t most, const std::function<void()>& work,
                    const std::function<void()>& cancel);

// Calls work(state, i) for each i below `count`, in as many threads as above. Each thread has a state of its own, made
// by make_state().
template <typename MakeState, typename Work>
void for_each_in_threads(int wanted, std::size_t count, const MakeState& make_state, const Work& work) {
  std::atomic<std::size_t> next = 0;
  const auto serve = [&] {
    auto state = make_state();
    for (std::size_t i = next++; i < count; i = next++) work(state, i);
  };
  // A failed thread ends the others by taking all that is left.
  run_in_threads(wanted, count, serve, [&] { next = count; });
}

}  // namespace holdfast::format
