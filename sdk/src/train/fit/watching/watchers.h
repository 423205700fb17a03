#pragma once

// The callbacks of a validation, of evaluate() or of predict(), which look and ask for nothing.
// docs/decisions/callbacks.md

#include <string>
#include <vector>

#include "holdfast/train/callback.h"
#include "train/step/training.h"

namespace holdfast {

class Watchers {
 public:
  // All arguments must outlive it.
  Watchers(Training& training, const std::vector<CallbackHandle>& callbacks, const TrainingContext& context)
      : training_(training), callbacks_(callbacks), context_(context) {}

  bool empty() const { return callbacks_.empty(); }

  // Calls this function of each of them.
  template <typename... Parameters, typename... Arguments>
  void tell(void (Callback::*function)(const TrainingContext&, Parameters...), const Arguments&... arguments) const {
    if (empty()) return;
    training_.enter(TrainingPhase::callbacks);
    for (const CallbackHandle& callback : callbacks_) ((*callback).*function)(context_, arguments...);
  }

 private:
  Training& training_;
  const std::vector<CallbackHandle>& callbacks_;
  const TrainingContext& context_;
};

// What all ranks must be given alike, as JSON: else some would wait for others at the end of the call.
std::string watchers_as_arguments(const std::vector<CallbackHandle>& callbacks);

}  // namespace holdfast
