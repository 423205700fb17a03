#include "train/fit/fit_context.h"

#include "holdfast/base/error.h"
#include "train/fit/fit_checks.h"

namespace holdfast {

// It begins within a callback.
void FitContext::begin_profile() {
  StepProfile& profile = training_.context->profile;
  profile.begin(shard_workers(*training_.context));
  profile.enter(StepProfile::kFit, to_string(TrainingPhase::callbacks));
}

void FitContext::save(const std::string& path, const SaveOptions& options) {
  // Callbacks may ask for one file in the same step. It is written once, as the last of them asks.
  std::erase_if(pending_, [&](const PendingSave& pending) { return pending.path == path; });
  pending_.push_back({path, options, training_.state.stage == FitStage::closing});
  // The value that chose this epoch is of the weights that were validated, so these belong into the file.
  SaveOptions& asked = pending_.back().options;
  if (!asked.weights) asked.weights = weights_to_validate(*training_.running_fit);
}

// Without room, which fit() finds where keeps_weights() of a callback asks for it, there is nothing to copy to.
void FitContext::keep_weights() {
  CallRecord& record = training_.state.calls.at(call_);
  if (!record.keeps_weights) {
    throw Error(ErrorCode::unsupported,
                "a callback asked fit() to keep the weights, and no callback's keeps_weights() is true, so there is no "
                "room for them; override it");
  }
  training_.kept.keep(training_.trainable);
  record.kept_epoch = training_.state.epoch;
}

}  // namespace holdfast
