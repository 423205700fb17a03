#include "hosts/beats.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

// More than are sent before a host is given up. Beats that are forgotten acknowledge nothing.
constexpr std::size_t kMostWaiting = 1024;

void refuse_beat(const std::string& what) {
  throw Error(ErrorCode::input_output, fmt::format("the peer sent a beat that cannot be: {}", what));
}

}  // namespace

void check_times(const HostTimes& times) {
  const bool are_positive = times.beat.count() > 0 && times.fence.count() > 0 && times.stop.count() > 0;
  // Two lost beats must not fence a host.
  if (are_positive && times.fence >= 4 * times.beat && times.host >= times.until_fenced()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a host beats every {} ms, ends its generation after {} ms without an answer, has {} ms for "
                          "that, and is given up after {} ms; the second must be at least four times the first, and "
                          "the last at least 1.1 times the sum of the two before it",
                          times.beat.count(), times.fence.count(), times.stop.count(), times.host.count()));
}

Beat Beats::next(BootTime now) {
  waiting_.push_back({.number = ++sent_, .at = now});
  if (waiting_.size() > kMostWaiting) waiting_.pop_front();
  return {.number = sent_, .heard = heard_number_};
}

void Beats::take(const Beat& beat, BootTime now) {
  if (beat.number <= heard_number_) refuse_beat(fmt::format("number {} after {}", beat.number, heard_number_));
  if (beat.heard > sent_) refuse_beat(fmt::format("it acknowledges number {} of {}", beat.heard, sent_));
  heard_number_ = beat.number;
  heard_ = now;
  while (!waiting_.empty() && waiting_.front().number <= beat.heard) {
    acknowledged_ = waiting_.front().at;
    waiting_.pop_front();
  }
}

}  // namespace holdfast::recovery
