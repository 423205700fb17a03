#pragma once

// What a replica is doing, as it tells the watchdog. Decides how long it may go without progress.

#include <string_view>

namespace holdfast::recovery {

// `regrouping`: on its way from a generation into the next, where a device must first let go. `callbacks`: in code of
// the application that training calls.
enum class Phase {
  starting,
  computing,
  waiting_for_peers,
  updating,
  saving,
  callbacks,
  evaluating,
  finishing,
  regrouping,
  reading_data
};

inline constexpr int kPhaseCount = 10;

// The enumerator's name, as written above.
std::string_view to_string(Phase phase);

}  // namespace holdfast::recovery
