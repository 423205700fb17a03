// A line that is overwritten in place, for a person who waits. It only appears after a moment, so that quick commands
// print nothing but their result.

#include "progress.h"

#include <utility>

#include "text.h"

namespace holdfast::cli {
namespace {

constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

Progress::Progress(Console& console, std::string what, std::function<Clock::time_point()> now)
    : console_(console), what_(std::move(what)), now_(std::move(now)), next_(now_() + kSilence) {}

Progress::~Progress() {
  if (is_shown_) console_.problems << kClearLine << std::flush;
}

void Progress::show(std::uint64_t done, std::uint64_t total) {
  // In a file the codes that clear a line would stay.
  if (!console_.has_terminal || total == 0) return;
  const Clock::time_point now = now_();
  if (now < next_) return;
  next_ = now + kPeriod;
  is_shown_ = true;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  // Rounded down, so that 100 % means that all is done.
  console_.problems << kClearLine << printable(what_) << "  " << static_cast<int>(100 * share) << " %" << std::flush;
}

}  // namespace holdfast::cli
