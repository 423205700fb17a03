#pragma once

// Shows the progress of long work as one line on a terminal. The line is rewritten as the work goes on, and cleared at
// the end. Without a terminal, or for short work, nothing is shown.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "console.h"

namespace holdfast::cli {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kSilence{500};  // until the line is shown first
  static constexpr std::chrono::milliseconds kPeriod{100};   // between two updates

  // `console` must outlive the object. `what` is the text before the percentage. `now` is the clock.
  Progress(Console& console, std::string what, std::function<Clock::time_point()> now = Clock::now);
  // Clears the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Any thread may call it, but only one at a time.
  void show(std::uint64_t done, std::uint64_t total);
  void set_what(std::string what) { what_ = std::move(what); }

 private:
  Console& console_;
  std::string what_;
  const std::function<Clock::time_point()> now_;
  Clock::time_point next_;
  bool is_shown_ = false;
};

}  // namespace holdfast::cli
