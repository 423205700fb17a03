#include "collective/hosts/link_wait.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// How long a wait lasts before the caller looks at the word of its arena. The agent also shuts links down, which wakes
// a wait at once, so this is for a generation that ends without that.
constexpr std::chrono::milliseconds kLookPeriod(10);

timespec to_timeout(Deadline::Clock::duration duration) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
  return {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
}

}  // namespace

LinkWait wait_for_links(std::span<const LinkInterest> interests, int cancel_event, Deadline deadline) {
  std::vector<pollfd> polled;
  polled.reserve(interests.size() + 1);
  for (const LinkInterest& interest : interests) {
    const int events = (interest.to_receive ? POLLIN : 0) | (interest.to_send ? POLLOUT : 0);
    // poll() reports the end of a link of which nothing is wanted any more, again and again. A rank that has all it
    // needs may have left already.
    if (events != 0) polled.push_back({interest.link->descriptor(), static_cast<short>(events), 0});
  }
  if (cancel_event >= 0) polled.push_back({cancel_event, POLLIN, 0});
  const timespec timeout = to_timeout(std::min<Deadline::Clock::duration>(deadline.remaining(), kLookPeriod));
  const int ready = ::ppoll(polled.data(), polled.size(), &timeout, nullptr);
  if (ready < 0 && errno != EINTR) throw system_error(errno, "waiting for connections between hosts failed");
  if (ready > 0 && cancel_event >= 0 && polled.back().revents != 0) return LinkWait::cancelled;
  if (ready <= 0 && deadline.has_passed()) return LinkWait::deadline_passed;
  return LinkWait::look_again;
}

}  // namespace holdfast
