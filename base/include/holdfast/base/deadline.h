#pragma once

// The moment at which a wait must end. Every function that can block takes one.

#include <algorithm>
#include <chrono>

namespace holdfast {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after(Clock::duration duration) { return Deadline(Clock::now() + duration); }
  static Deadline at(Clock::time_point moment) { return Deadline(moment); }

  Clock::time_point moment() const { return moment_; }
  bool has_passed() const { return Clock::now() >= moment_; }
  // Zero once the moment has passed.
  Clock::duration remaining() const { return std::max(moment_ - Clock::now(), Clock::duration::zero()); }

 private:
  explicit Deadline(Clock::time_point moment) : moment_(moment) {}

  Clock::time_point moment_;
};

}  // namespace holdfast
