#include "train/fit/fit_context.h"

#include "holdfast/base/error.h"
#include "train/fit/fit_checks.h"

namespace holdfast {

// Copies, since a callback may keep the arrays while training goes on.
std::vector<WeightArray> FitContext::weights() const {
  std::vector<WeightArray> arrays;
  for (const StateSpan& span : weights_of(training_.trainable)) {
    WeightArray& array = arrays.emplace_back(
        WeightArray{.name = span.name, .shape = span.shape, .values = std::vector<float>(span.values.size())});
    training_.trainable.memory().copy_to_host(span.values, array.values);
  }
  return arrays;
}

// It begins within a callback.
void FitContext::begin_profile() {
  StepProfile& profile = training_.context->profile;
  profile.begin(shard_workers(*training_.context));
  profile.enter(StepProfile::kFit, to_string(TrainingPhase::callbacks));
}

std::vector<std::vector<Logs>> FitContext::earlier_histories() const {
  std::vector<std::vector<Logs>> histories;
  for (std::size_t call = 0; call < call_; ++call) {
    const CallRecord& earlier = training_.state.calls.at(call);
    if (earlier.kind == "fit") histories.push_back(earlier.history);
  }
  return histories;
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
