#pragma once

// How many threads load batches, where PrefetchOptions::automatic asks for it. No bit depends on the answer.

#include <chrono>
#include <deque>
#include <optional>
#include <span>

namespace holdfast {

// The smallest number of threads, 1 to `most`, that loads a batch in less than a step. `loads` are what batches took,
// times the threads that loaded them; `steps` are what the program did between two batches. Durations are in seconds.
// Their medians count, so a validation between two steps has no influence. Without durations: 1.
int threads_to_load(std::span<const double> loads, std::span<const double> steps, int most);

// Collects the durations, and says when another number of threads is better. For one thread at a time.
class ThreadChoice {
 public:
  explicit ThreadChoice(int most) : most_(most) {}

  void note_load(std::chrono::duration<double> time);  // of a batch, by threads() threads
  void note_step(std::chrono::duration<double> time);
  // After every kWindow batches: the number to use from now on, if it is another one.
  std::optional<int> next();
  int threads() const { return threads_; }

  static constexpr std::size_t kWindow = 16;  // durations that are looked at

 private:
  int most_;
  int threads_ = 1;
  std::size_t loads_since_choice_ = 0;
  std::deque<double> loads_;  // the last kWindow
  std::deque<double> steps_;
};

}  // namespace holdfast
