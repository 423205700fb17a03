#include "holdfast/recovery/phase.h"

namespace holdfast::recovery {

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::starting:
      return "starting";
    case Phase::computing:
      return "computing";
    case Phase::waiting_for_peers:
      return "waiting_for_peers";
    case Phase::updating:
      return "updating";
    case Phase::saving:
      return "saving";
    case Phase::callbacks:
      return "callbacks";
    case Phase::evaluating:
      return "evaluating";
    case Phase::finishing:
      return "finishing";
    case Phase::regrouping:
      return "regrouping";
    case Phase::reading_data:
      return "reading_data";
  }
  return "unknown";
}

}  // namespace holdfast::recovery
