// Which decisions the user reads. A decision that is told for two reasons used to stand in the log twice.

#include "journal/told_decision.h"

#include <gtest/gtest.h>

namespace holdfast::recovery {
namespace {

struct Case {
  EventKind kind{};
  bool changes_a_slot = false;
  bool is_of_a_failure = false;
  bool has_parted_hosts = false;
  std::optional<LogLevel> level{};
};

TEST(ToldDecision, IsToldOnceAtTheHighestLevel) {
  using enum EventKind;
  for (const Case& one : {
           Case{.kind = ready},
           Case{.kind = fence_passed},
           Case{.kind = died, .changes_a_slot = true, .is_of_a_failure = true},
           Case{.kind = progressed, .changes_a_slot = true, .level = LogLevel::info},
           Case{.kind = stop_requested, .level = LogLevel::info},
           Case{.kind = scale_requested, .level = LogLevel::info},
           // The new process tries a device slot that has rested.
           Case{.kind = scale_requested, .changes_a_slot = true, .level = LogLevel::info},
           Case{.kind = assignment_proposed, .level = LogLevel::info},
           Case{.kind = host_joined, .level = LogLevel::info},
           Case{.kind = host_returned, .changes_a_slot = true, .level = LogLevel::info},
           Case{.kind = host_leaving, .changes_a_slot = true, .level = LogLevel::info},
           Case{.kind = device_slot_lost, .changes_a_slot = true, .is_of_a_failure = true, .level = LogLevel::warning},
           Case{.kind = host_lost, .is_of_a_failure = true, .level = LogLevel::warning},
           Case{.kind = hosts_cut, .is_of_a_failure = true, .level = LogLevel::warning},
           Case{.kind = checked_in, .has_parted_hosts = true, .level = LogLevel::warning},
           // One of the two hosts is lost before it was decided which of them goes.
           Case{.kind = host_lost, .is_of_a_failure = true, .has_parted_hosts = true, .level = LogLevel::warning},
       }) {
    Decision decision{.is_of_a_failure = one.is_of_a_failure};
    if (one.changes_a_slot) decision.device_slot_changes.emplace_back();

    EXPECT_EQ(told_level({.kind = one.kind}, decision, one.has_parted_hosts), one.level) << to_string(one.kind);
  }
}

}  // namespace
}  // namespace holdfast::recovery
