// What fit() does at its beginning, at a step, at an epoch's end and at its own end. The loop is in fit_course.cpp.
// docs/decisions/training-loop.md

#include "train/fit/fit_course.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "data/batches/not_finite_samples.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "train/fit/fit_checks.h"
#include "train/fit/means.h"
#include "train/saving/callback_states.h"
#include "train/state/resume.h"

namespace holdfast {

// A callback learns of a recovery through restore(), and not by a second on_fit_begin(): a run with a failure makes the
// same calls as one without. docs/decisions/callbacks.md
void FitCourse::begin_fit() {
  // A process that joins later gets the callbacks' state from a peer, and with it what on_fit_begin() had done.
  const bool is_at_start = training_.state.epoch == 0 && training_.state.batch == 0;
  restore_callbacks_of_fit();
  for (const CallbackHandle& callback : options_.callbacks) {
    if (is_at_start && !has_callback_state(training_, *callback)) callback->on_fit_begin(*context_);
  }
}

void FitCourse::restore_callbacks_of_fit() {
  session_.generation_.take_news_of_state();
  restore_callbacks(training_, options_);
  // After restore_callbacks(), which would overwrite what a callback does here.
  if (!std::exchange(session_.is_extended_, false)) return;
  const TrainState& state = training_.state;
  const Logs& last_epoch = record().history.back();
  for (const CallbackHandle& callback : options_.callbacks) {
    callback->on_fit_extended(state.step, state.epoch, last_epoch);
  }
}

void FitCourse::begin_epoch() {
  training_.state.stage = FitStage::in_epoch;
  training_.enter(TrainingPhase::callbacks);
  for (const CallbackHandle& callback : options_.callbacks) callback->on_epoch_begin(*context_);
  begin_step();
}

// Long before the step: with the other calls that come between two steps. So a state between them includes these calls,
// and needs no sign of whether the next step has begun.
void FitCourse::begin_step() {
  training_.enter(TrainingPhase::callbacks);
  context_->set_begins_step(true);
  for (const CallbackHandle& callback : options_.callbacks) callback->on_step_begin(*context_);
  context_->set_begins_step(false);
}

// A step of several batches computes as many shards of each, in place of one.
int FitCourse::shards_together() const {
  return static_cast<int>(plan_.accumulate());
}

StepRunner::TrainOptions FitCourse::step_options(const Batch& batch) const {
  const std::int64_t step = training_.state.step;
  const bool is_disputed = session_.agreement_.is_disputed(step + 1);
  // Rank 0 alone looks at its clock. The others learn it from the sums, so all compare their states after the same
  // step.
  const bool is_due = session_.memory_saver_.is_due();
  // Samples of a check are read anew, since the buffer of the first computation may be what is wrong.
  const auto load = [&context = *training_.context, &data = plan_.data(), together = shards_together(),
                     parts = ShardTree::parts_of_a_node(training_.context->shards, shards_together()),
                     batches = EpochPlan::batches_together(record()), epoch = batch.epoch,
                     index = batch.index](ShardRange shards) {
    return LoadedShards(data, context.seed, context.shards * together, shards.begin * parts, shards.end * parts, epoch,
                        index, batches);
  };
  return {.asks_comparison = is_due || is_disputed,
          .asks_end = training_.asks_end,
          .applies_what_is_not_finite = options_.when_not_finite == WhenNotFinite::go_on,
          .learning_rate = rate_of_step(),
          .checked_shards = checked_shards(options_.check_gradients, step),
          .shards_together = shards_together(),
          .load = load};
}

// With a rate for a number of replicas, the rate follows the batch of each step, also where a schedule or a callback
// sets it.
std::optional<float> FitCourse::rate_of_step() const {
  const CallRecord& call = record();
  const TrainState& state = training_.state;
  if (!call.per_replica || call.per_replica->rate_for_replicas == 0) return state.learning_rate;
  const std::optional<float> rate =
      state.learning_rate ? state.learning_rate : training_.trainable.learning_rate(state.step + 1);
  if (!rate) return rate;
  const double factor = static_cast<double>(call.per_replica->replicas()) / call.per_replica->rate_for_replicas;
  return static_cast<float>(*rate * factor);
}

// A skipped step counts, and its samples do not.
void FitCourse::count_step(const Batch& batch, const StepOutcome& outcome) {
  CallRecord& call = record();
  // After a step that failed, each rank looks at the samples that it has. All of them say the same about the step.
  std::string cause;
  if (!outcome.not_finite.empty()) {
    std::string own = sample_not_finite(batch, plan_.data(), training_.context->seed, training_.trainable.memory());
    training_.enter(TrainingPhase::waiting_for_peers);
    cause = training_.runner->share_first_text(std::move(own));
  }
  // First: it throws where this step must not count, because its gradients are disputed or not finite.
  session_.agreement_.judge(outcome, cause);
  TrainState& state = training_.state;
  ++state.step;
  ++state.batch;
  plan_.count(call, batch.samples);
  const bool is_skipped = !outcome.not_finite.empty();
  // The number of sums is not known before the first step of an epoch.
  if (call.epoch_sums.empty()) call.epoch_sums.resize(outcome.sums.size());
  if (call.epoch_sums.size() != outcome.sums.size()) {
    throw Error(ErrorCode::incompatible,
                fmt::format("the savepoint has {} sums of losses and metrics of the epoch, and a step gives {}; train "
                            "with the losses and metrics of the savepoint until its epoch ends",
                            call.epoch_sums.size(), outcome.sums.size()));
  }
  for (std::size_t i = 0; i < outcome.sums.size(); ++i) call.epoch_sums[i] += is_skipped ? 0 : outcome.sums[i];
  if (batch.has_weights()) call.epoch_weight = call.epoch_weight.value_or(0) + (is_skipped ? 0 : outcome.weight);
  if (!is_skipped) add_divisors(outcome.divisors, call.epoch_divisors);
  // Skipped samples count here as well, since this number tells callbacks how far the epoch is.
  call.epoch_samples += batch.samples;
  if (is_skipped) call.epoch_skipped_samples += batch.samples;
  session_.asked_ |= outcome.requests;
  training_.runner->reach(FaultPoint::after_update, state.step - 1);
  // The other ranks have applied the step by now, or do so without this one.
  if (!is_skipped) session_.agreement_.leave_if_wrong(outcome, state.step - 1);
}

Logs FitCourse::end_step() {
  Logs logs = means_of_epoch();
  training_.runner->reach(FaultPoint::callback, training_.state.step - 1);
  training_.enter(TrainingPhase::callbacks);
  // A callback asked for the end before the step, which it could only end after.
  if (training_.state.stage == FitStage::last_step) training_.state.stage = FitStage::ending;
  // Some rank asked for the end with this step, and all ranks have learned it from the sums.
  if (std::exchange(session_.asked_.end, false)) context_->stop_training();
  for (const CallbackHandle& callback : options_.callbacks) callback->on_step_end(*context_, logs);
  return logs;
}

// Means over the steps that were not skipped; NaN if all were skipped.
Logs FitCourse::means_of_epoch() const {
  const CallRecord& call = record();
  const auto samples = static_cast<double>(call.epoch_samples - call.epoch_skipped_samples);
  // A callback may end fit() before the first step of an epoch, when nothing was summed.
  std::vector<double> sums = call.epoch_sums;
  sums.resize(training_.trainable.sum_names().size());
  return results_by_name(training_.trainable, sums, call.epoch_weight.value_or(samples), call.epoch_divisors);
}

// If this is cut off, all of it comes again, with its calls. A callback then has the state that it had before, on a
// survivor too: it would count a batch twice else, and not as the callbacks of other ranks.
Logs FitCourse::validate() {
  const HeldCallbackStates held(training_);
  const Watchers watchers(training_, options_.callbacks, *context_);
  try {
    return session_.evaluate_once({*options_.validation, weights_to_validate(options_), watchers});
  } catch (...) {
    restore_callbacks(training_, options_);
    throw;
  }
}

// The epoch number changes after the callbacks, which belong to the epoch that ends. A savepoint that they ask for is
// taken later, so it begins with the next epoch.
void FitCourse::end_epoch() {
  CallRecord& call = record();
  TrainState& state = training_.state;
  Logs logs = means_of_epoch();
  // If the generation ends in here, the state still says that the epoch is done. The next generation comes back here.
  if (options_.validation && context_->is_validated()) {
    for (const auto& [name, value] : validate()) logs["val_" + name] = value;
  }
  training_.enter(TrainingPhase::callbacks);
  for (const CallbackHandle& callback : options_.callbacks) callback->on_epoch_end(*context_, logs);
  call.results = logs;
  call.history.push_back(logs);
  if (training_.is_primary() && call.history.size() == 1) {
    training_.supervision.report_event("first_epoch_finished", nlohmann::json{{"step", state.step}}.dump());
  }
  call.epoch_sums.clear();
  call.epoch_samples = 0;
  call.epoch_weight.reset();
  call.epoch_divisors.clear();
  call.epoch_skipped_samples = 0;
  ++state.epoch;
  state.batch = 0;
  if (state.stage == FitStage::ending || state.epoch == call.epochs) return end_fit();
  state.stage = FitStage::before_epoch;
}

// A run without ModelCheckpoint must leave its result, too, so the final state becomes a savepoint unless a callback
// saves it. Only the last such savepoint stays.
void FitCourse::end_fit() {
  CallRecord& call = record();
  TrainState& state = training_.state;
  call.is_finished = true;
  // The number of epochs alone does not show it. Such a fit() does not go on if it gets more epochs.
  call.is_ended_by_callback = state.stage == FitStage::ending && state.epoch == call.epochs;
  state.stage = FitStage::closing;
  training_.enter(TrainingPhase::callbacks);
  for (const CallbackHandle& callback : options_.callbacks) {
    callback->on_fit_end(*context_, call.results);
  }
  // On every rank, so that the state is the same whichever of them saves it.
  collect_callback_states(training_);
  // The savepoint of an earlier end of this call, to which more epochs were given since.
  const bool has_moved_on = call.own_savepoint_step >= 0 && call.own_savepoint_step != state.step;
  if (has_moved_on) session_.saver_.replace_final_savepoint(call.own_savepoint_step);
  const std::string directory = training_.context->trainer_directory();
  // A callback that saves this state to the same path has taken it over, so it is not fit()'s to delete.
  const bool is_kept_by_callback = context_->is_asked_to_save(directory + "/" + savepoint_name(state.step));
  call.own_savepoint_step = !training_.is_supervised() || is_kept_by_callback ? -1 : state.step;
  if (!training_.is_primary()) return;
  const bool restores = call.kept_use == CallRecord::KeptUse::due;
  const Digest weights =
      restores ? training_.kept.weights_digest(training_.trainable.memory()) : training_.weights_digest();
  const nlohmann::json detail{{"step", state.step}, {"weights_digest", weights.hex()}};
  training_.supervision.report_event("fit_finished", detail.dump());
}

// After the last step, until all ranks know that what rank 0 was asked to save is durable. No snapshot is taken in
// memory meanwhile, and no other rank keeps the state if this is cut off: a run that went on from a finished fit()
// would never write its last savepoints. The ranks train to the end of fit() once more instead.
void FitCourse::close_fit() {
  // No snapshot of this call may still be on its way when the call counts as closed.
  session_.memory_saver_.finish();
  session_.agreement_.agree();
  restore_kept_weights();
  if (training_.keeps_savepoints() && training_.context->writes_files)
    session_.saver_.submit_all(context_->take_pending());
  if (std::exchange(session_.asked_.savepoint, false)) session_.saver_.save_on_request();
  if (session_.asked_.stop) session_.saver_.stop();
  session_.saver_.finish_fit();
  training_.enter(TrainingPhase::callbacks);
  // From here on any rank may keep this state: everything that rank 0 owed is durable.
  training_.state.stage = FitStage::between_calls;
}

// What was asked for before the end of fit() is of the weights of its last epoch, and what is asked for since is of the
// kept ones. A rank that comes here a second time, in a later generation, has restored them already.
void FitCourse::restore_kept_weights() {
  CallRecord& call = record();
  if (call.kept_use != CallRecord::KeptUse::due) return;
  const std::vector<PendingSave> of_last_epoch = context_->take_pending_before_end();
  if (training_.keeps_savepoints() && training_.context->writes_files) session_.saver_.submit_all(of_last_epoch);
  training_.kept.exchange(training_.trainable);
  call.kept_use = CallRecord::KeptUse::restored;
  session_.agreement_.agree();
}

}  // namespace holdfast
