#pragma once

// What the parts of a Trainer share: the state of the run, and what it is trained with. Whatever influences a later
// step is in `state` or in the Trainable's arrays.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/train/fit_options.h"
#include "holdfast/train/trainable.h"
#include "train/context/replica_context.h"
#include "train/state/kept_weights.h"
#include "train/state/train_state.h"
#include "train/step/step_runner.h"

namespace holdfast {

struct Training {
  const std::shared_ptr<Replica::Context> context;
  Trainable& trainable;
  Supervision& supervision;
  FileSystem& files;  // through which savepoints are written, read back and deleted

  TrainState state{};
  KeptWeights kept{};                       // a part of the state, as the arrays of the Trainable are
  std::size_t calls_made = 0;               // of fit() and evaluate(), by this process
  std::optional<StepRunner> runner{};       // of the newest generation
  const FitOptions* running_fit = nullptr;  // the one that is under way
  bool asks_end = false;                    // of fit(), with each step from now on
  bool holds_callback_states = false;       // `state` keeps those that it has

  bool is_primary() const { return context->rank == 0; }
  bool keeps_savepoints() const { return context->keeps_savepoints(); }
  // Whether a watchdog keeps the run, so that there is something to go back to.
  bool is_supervised() const { return !context->run_directory.empty(); }
  void enter(TrainingPhase phase) {
    if (context->profile.is_on()) context->profile.enter(StepProfile::kFit, to_string(phase));
    supervision.enter(phase, state.step);
  }

  StateArrays state_arrays() { return {trainable, kept}; }
  std::vector<std::span<const float>> arrays() {
    std::vector<std::span<const float>> arrays;
    for (const StateSpan& span : state_arrays().spans()) arrays.push_back(span.values);
    return arrays;
  }
  Digest weights_digest() const {
    std::vector<std::span<const float>> weights;
    for (const StateSpan& span : trainable.state()) {
      if (span.kind == StateKind::parameter) weights.push_back(span.values);
    }
    return trainable.memory().digest_of(weights);
  }
};

}  // namespace holdfast
