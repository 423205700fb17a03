#include "holdfast/base/training_phase.h"

namespace holdfast {

// `holdfast status --json` prints these names, so they are data and stay as they are.
std::string_view to_string(TrainingPhase phase) {
  switch (phase) {
    case TrainingPhase::starting:
      return "starting";
    case TrainingPhase::computing:
      return "computing";
    case TrainingPhase::waiting_for_peers:
      return "waiting_for_peers";
    case TrainingPhase::updating:
      return "updating";
    case TrainingPhase::saving:
      return "saving";
    case TrainingPhase::callbacks:
      return "callbacks";
    case TrainingPhase::evaluating:
      return "evaluating";
    case TrainingPhase::finishing:
      return "finishing";
    case TrainingPhase::regrouping:
      return "regrouping";
    case TrainingPhase::reading_data:
      return "reading_data";
  }
  return "unknown";
}

}  // namespace holdfast
