#pragma once

// The moment at which a wait must end. Every function of Holdfast that can block takes one, so that
// no process waits forever for a peer that died.
//
// A deadline is a point in time, not a duration. A function that waits several times passes the same
// deadline on, and the sum of its waits stays bounded:
//
//   const auto deadline = Deadline::after(std::chrono::seconds(30));
//   connect(peer, deadline);
//   receive(peer, deadline);  // waits only for what connect() left of the 30 s
//
// The clock is monotonic: a change of the system's time does not move a deadline.

#include <algorithm>
#include <chrono>

namespace holdfast {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;  // a change of the system's time does not move it

  // `duration` from the moment of this call.
  static Deadline after(Clock::duration duration) { return Deadline(Clock::now() + duration); }
  // The given moment, which may have passed.
  static Deadline at(Clock::time_point moment) { return Deadline(moment); }

  Clock::time_point moment() const { return moment_; }         // at which the wait must end
  bool has_passed() const { return Clock::now() >= moment_; }  // whether the moment is now or earlier
  // How much longer a wait may last. Zero, never negative, once the moment has passed.
  Clock::duration remaining() const { return std::max(moment_ - Clock::now(), Clock::duration::zero()); }

 private:
  explicit Deadline(Clock::time_point moment) : moment_(moment) {}

  Clock::time_point moment_;
};

}  // namespace holdfast
