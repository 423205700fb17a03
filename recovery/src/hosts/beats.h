#pragma once

// How agents and head know that they reach each other. Both send beats, each with a number and with the number of the
// newest beat that came from the other. So each knows when it sent the newest beat that has arrived: from that moment
// on, and not from the arrival of the answer, it counts how long it has been cut off. A cut in one direction counts
// like one in both.
//
// The fence of an agent follows from that. An agent whose beats were not acknowledged for `fence` ends its generation,
// within `stop` more. The head gives a silent host up after `host`, which is longer than both. Then nothing of the host
// trains or writes any more. Pure functions of time; docs/decisions/fences.md

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

#include <nlohmann/json.hpp>

#include "memory/fence.h"

namespace holdfast::recovery {

struct HostTimes {
  std::chrono::milliseconds beat{100};    // between two beats
  std::chrono::milliseconds fence{3000};  // an agent without an acknowledged beat for this long ends its generation
  std::chrono::milliseconds stop{1000};   // and has this long to do so; then it kills
  std::chrono::milliseconds host{5000};   // the head gives a host up that does not answer for this long

  // The fence of an agent has run out this long after the head last heard it, also with a clock that is a tenth slower.
  std::chrono::milliseconds until_fenced() const { return (fence + stop) * 11 / 10; }
};

// Throws Error{invalid_argument} for times with which the head would give a host up before its fence has run out.
void check_times(const HostTimes& times);

struct Beat {
  std::uint64_t number = 0;  // from 1
  std::uint64_t heard = 0;   // the number of the newest beat of the other; 0: none
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Beat, number, heard)

// One end of a connection.
class Beats {
 public:
  // `start` counts as acknowledged and as heard.
  explicit Beats(BootTime start) : acknowledged_(start), heard_(start) {}

  // The next beat to send, now.
  Beat next(BootTime now);
  // Takes a beat of the other. Throws Error{input_output} for one that it cannot have sent.
  void take(const Beat& beat, BootTime now);

  // When the newest beat was sent that the other is known to have heard.
  BootTime acknowledged() const { return acknowledged_; }
  // When the newest beat of the other came.
  BootTime heard() const { return heard_; }

 private:
  struct Sent {
    std::uint64_t number = 0;
    BootTime at{};
  };

  std::uint64_t sent_ = 0;  // the number of the newest beat
  std::uint64_t heard_number_ = 0;
  std::deque<Sent> waiting_;  // not acknowledged, the oldest first
  BootTime acknowledged_;
  BootTime heard_;
};

}  // namespace holdfast::recovery
