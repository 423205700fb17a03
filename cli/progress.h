#pragma once

// How far long work is: one line on a terminal, written over and over, and nothing left of it in the end. Nothing at
// all where there is no terminal, or when the work is short.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "console.h"

namespace holdfast::cli {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kSilence{500};  // before the first line
  static constexpr std::chrono::milliseconds kPeriod{100};   // between two

  // `console` must outlive the object. `now` is the clock.
  Progress(Console& console, std::string what, std::function<Clock::time_point()> now = Clock::now);
  // Clears the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One call at a time, from any thread.
  void show(std::uint64_t done, std::uint64_t total);
  void set_what(std::string what) { what_ = std::move(what); }
  // Calls show(). Valid while the object is.
  std::function<void(std::uint64_t done, std::uint64_t total)> callback();

 private:
  Console& console_;
  std::string what_;
  const std::function<Clock::time_point()> now_;
  Clock::time_point next_;
  bool is_shown_ = false;
};

}  // namespace holdfast::cli
