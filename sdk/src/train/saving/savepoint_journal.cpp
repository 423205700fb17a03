// Every event is a line of the journal, from which `holdfast report` tells the story. The log gets only what a user can
// do something about.

#include "train/saving/savepoint_journal.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using Kind = SavepointEvent::Kind;

constexpr auto kProgressPeriod = std::chrono::seconds(10);
constexpr double kLongWaitSeconds = 1;

Json details_of(const SavepointEvent& event) {
  Json details = {{"path", event.path}, {"step", event.step}};
  // Only members that the kind has; zeros would look like measurements.
  if (event.kind == Kind::progress) details["done_bytes"] = event.done_bytes;
  if (event.kind == Kind::progress || event.kind == Kind::durable) details["total_bytes"] = event.total_bytes;
  if (event.kind == Kind::durable) {
    details["file_bytes"] = event.file_bytes;
    details["ratio"] = event.ratio;
    details["digest"] = event.digest.hex();
  }
  if (event.kind == Kind::durable || event.kind == Kind::waited) details["seconds"] = event.seconds;
  if (!event.why.empty()) details["why"] = event.why;
  return details;
}

// A durable savepoint is the event "savepoint"; other events are "savepoint_started" and the like.
std::string name_of(Kind kind) {
  return kind == Kind::durable ? "savepoint" : "savepoint_" + std::string(to_string(kind));
}

void log_event(const SavepointEvent& event) {
  if (event.kind == Kind::skipped) {
    log(LogLevel::warning, fmt::format("savepoint {} is skipped: {}", event.path, event.why));
  } else if (event.kind == Kind::waited && event.seconds >= kLongWaitSeconds) {
    log(LogLevel::warning, fmt::format("training waited {:.1f} s until savepoint {} could be queued: the storage is "
                                       "slower than savepoints are due; save less often, or on a faster disk",
                                       event.seconds, event.path));
  } else if (event.kind == Kind::compression_chosen) {
    log(LogLevel::info, fmt::format("savepoints are compressed as {}", event.why));
  }
}

}  // namespace

void SavepointJournal::note(const SavepointEvent& event) {
  if (event.kind == Kind::progress) {
    // A line for every piece would make the journal larger than it is useful.
    const Clock::time_point now = Clock::now();
    if (now - last_progress_ < kProgressPeriod) return;
    last_progress_ = now;
  }
  if (!is_told_ && event.kind != Kind::failed && event.kind != Kind::skipped) return;
  supervision_.report_event(name_of(event.kind), details_of(event).dump());
  log_event(event);
}

}  // namespace holdfast
