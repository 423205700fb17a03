#include "holdfast/base/training_phase.h"

#include <array>
#include <cstddef>

namespace holdfast {

// In the order of the enumerators. `holdfast status --json` prints these names, so they are data and stay as they are.
std::string_view to_string(TrainingPhase phase) {
  static constexpr std::array<std::string_view, kTrainingPhaseCount> kNames = {
      "starting",  "computing",  "waiting_for_peers", "updating",   "saving",
      "callbacks", "evaluating", "finishing",         "regrouping", "reading_data"};
  const auto number = static_cast<std::size_t>(phase);
  return number < kNames.size() ? kNames[number] : "unknown";
}

}  // namespace holdfast
