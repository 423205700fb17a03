// fit() is one loop: data, step, callbacks, savepoint. Whatever ends a generation throws through here, and the loop
// goes on from the state that the next generation agrees on. Everything that it needs to know for that is in the state.
// The loop is turned inside out, so that a program can have its own body in it. docs/decisions/training-loop.md

#include "train/fit/fit_course.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/batches/sample_places.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "train/context/other_choices.h"
#include "train/fit/fit_checks.h"
#include "train/fit/weights_in_use.h"
#include "train/state/batch_changes.h"
#include "train/state/run_results.h"
#include "train/step/checked_step.h"
#include "train/step/profiled_step.h"

namespace holdfast {

// Arguments are checked first: a mistake is told at once, and not when all replicas have met.
static EpochPlan checked_plan(const Dataset& data, const FitOptions& options, const Training& training) {
  require_fitting_data(data, training.trainable, "fit()");
  if (options.validation) require_fitting_data(*options.validation, training.trainable, "fit() for validation");
  require_sensible_options(data, options, training.trainable, training.context->shards);
  require_rows_to_normalize(data, training.trainable, training.context->shards, training.is_primary());
  EpochPlan plan(data, options);
  // Once more: class weights are weights of samples, which not every model takes.
  if (!options.class_weights.empty()) require_fitting_data(plan.data(), training.trainable, "fit()");
  if (plan.data().batches() == 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("fit() with accumulate = {} makes steps of {} samples, and drop_remainder leaves out the "
                            "{} that there are; accumulate fewer batches, or keep the remainder",
                            options.accumulate, options.accumulate * data.batch_size(), data.size()));
  }
  return plan;
}

// What the record of the call does not have, and the ranks must be given alike.
static std::string further_arguments(const FitOptions& options) {
  nlohmann::json further{{"validation_every", options.validation_every},
                         {"when_not_finite", static_cast<int>(options.when_not_finite)},
                         {"check_gradients", {options.check_gradients.every, options.check_gradients.shards}}};
  if (options.validation) further["validation"] = nlohmann::json::parse(options.validation->description());
  const GlobalBatch& batch = options.global_batch;
  if (batch.policy != BatchPolicy::fixed) {
    nlohmann::json replay = nlohmann::json::array();
    for (const BatchChange& change : batch.replay) replay.push_back({change.step, change.replicas});
    further["global_batch"] = {{"rate_for_replicas", batch.rate_for_replicas}, {"replay", replay}};
  }
  return further.dump();
}

// A record of another run, or one of a list that ends too early to begin with, must not be followed by other batches
// without a message.
static void require_replay(const std::vector<BatchChange>& recorded, const std::vector<BatchChange>& replay,
                           std::int64_t step) {
  if (replicas_at(replay, step) == 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("global_batch.replay begins at step {}, and fit() is at step {}; give it the whole list "
                            "that recorded_batches() returns",
                            replay.front().step, step));
  }
  const std::string contradiction = contradiction_of(recorded, replay, step);
  if (contradiction.empty()) return;
  throw OtherChoices(fmt::format("global_batch.replay does not fit the run: {}. Leave replay out to go on, or {}",
                                 contradiction, kHowToStartAnew));
}

FitCourse::FitCourse(Trainer::Session& session, const Dataset& data, const FitOptions& options)
    : session_(session),
      training_(session.training_),
      options_(options),
      plan_(checked_plan(data, options, session.training_)),
      begun_(Trainer::Session::new_call("fit", plan_.described(), options.epochs)) {
  // A process that has not joined does not know how many replicas there will be.
  session_.generation_.join(plan_.data_for(training_.context->first_replicas), WarmUp::training, shards_together());
  begun_.steps_per_epoch = options.steps_per_epoch;
  begun_.accumulate = options.accumulate;
  begun_.adds_as_one_batch =
      ShardTree::parts_of_a_node(training_.context->shards, shards_together()) != shards_together();
  if (options.global_batch.policy == BatchPolicy::per_replica) {
    begun_.per_replica.emplace().rate_for_replicas = options.global_batch.rate_for_replicas;
  }
  begun_.keeps_weights =
      std::ranges::any_of(options.callbacks, [](const CallbackHandle& callback) { return callback->keeps_weights(); });
  call_ = session_.join_call(begun_, further_arguments(options));
  session_.note_skipped(call_, {&plan_.data(), options.validation ? &*options.validation : &plan_.data()});
  session_.in_call(call_, [&] {
    try {
      begin();
    } catch (...) {
      // The destructor is not called for a constructor that throws.
      training_.running_fit = nullptr;
      throw;
    }
  });
}

FitCourse::~FitCourse() {
  if (has_ended_) return;
  training_.running_fit = nullptr;
  session_.note_failure(call_, "the loop over its steps was left before its end, which stop_training() would bring");
}

// A run that goes on passes the calls that it had finished, with their recorded results.
void FitCourse::begin() {
  if (is_over()) {
    if (training_.is_primary()) {
      log(LogLevel::info, fmt::format("this run's fit() had finished at step {}", training_.state.step));
    }
    return;
  }
  // Only here it is known which layers are frozen: another start of the run may have compiled the model.
  if (training_.is_primary()) warn_of_nothing_to_train(training_.trainable);
  training_.running_fit = &options_;
  training_.asks_end = false;
  context_.emplace(training_, call_, plan_);
  // Not after a recovery: a callback that was told of the beginning is not told again.
  begin_fit();
}

bool FitCourse::is_over() const {
  return record().is_finished && training_.state.stage != FitStage::closing;
}

bool FitCourse::is_epoch_done() const {
  return plan_.is_epoch_done(training_.state, record());
}

bool FitCourse::advance() {
  try {
    while (!has_ended_) {
      std::optional<Batch> batch;
      try {
        if (is_over()) {
          end();
        } else if (record().is_finished) {
          loader_.reset();
          close_fit();
        } else if (batch = next_batch(); !batch) {
          finish_step();
        } else {
          StepRunner& runner = *training_.runner;
          const std::int64_t step = training_.state.step;
          const StepRunner::TrainOptions options = step_options(*batch);
          StepArithmetic arithmetic(runner, *batch, step, options);
          WatchedStep watched = arithmetic.watched();
          std::optional<ProfiledStep> profiled;  // while a callback asks for it
          if (training_.context->profile.is_on()) profiled.emplace(watched, training_.context->profile);
          Step& told = profiled ? static_cast<Step&>(*profiled) : watched;
          note_step(*batch,
                    options.checked_shards > 0 ? CheckedStep(runner, options, step).train(*batch) : carry_out(told));
          return true;
        }
      } catch (const GenerationEnded&) {
        go_on(false);
      } catch (const RollBack&) {
        // The replicas disagree about this state, so none of them may offer it to the next generation.
        go_on(true);
      } catch (const SampleError& error) {
        if (!batch) throw;
        throw with_name_of_sample(error, plan_.data(), training_.context->seed, *batch);
      }
    }
    return false;
  } catch (const StopRequested&) {
    leave();
    throw;
  } catch (const std::exception& failure) {
    fail(failure.what());
    throw;
  } catch (...) {
    fail(kOtherThanException);
    throw;
  }
}

// fit()'s options must not be used after its end, however it ends.
void FitCourse::leave() {
  training_.running_fit = nullptr;
  loader_.reset();
  has_ended_ = true;
}

// Later calls know of the failure.
void FitCourse::fail(const std::string& sentence) {
  leave();
  session_.note_failure(call_, sentence);
}

void FitCourse::go_on(bool gives_up_state) {
  loader_.reset();
  is_step_open_ = false;
  if (gives_up_state) session_.generation_.give_up_state();
  session_.begin_next_generation(begun_);
  if (session_.generation_.take_news_of_state()) restore_callbacks_of_fit();
  // A savepoint that was asked for may be of a state that has been given up.
  if (!record().is_finished) context_->forget_pending();
}

// Also where another rank had closed the call before it died: each rank that lives has the results.
void FitCourse::end() {
  training_.running_fit = nullptr;
  note_results(*training_.context, training_.state, training_.weights_digest());
  session_.weights_of_model_ = weights_to_validate(options_);
  const WeightsInUse in_use(training_.trainable, session_.weights_of_model_);
  training_.trainable.on_fit_end();
  has_ended_ = true;
}

FitResult FitCourse::result() const {
  return {record().results, record().history, weights_to_validate(options_)};
}

// From wherever the state is to the end of fit().
void FitCourse::open_data() {
  const TrainState& state = training_.state;
  if (plan_.is_beyond(state, record())) {
    throw Error(
        ErrorCode::invalid_file,
        fmt::format("the training state is at batch {} of epoch {}, and fit() has {} batches in each of {} epochs; "
                    "the savepoint is damaged or belongs to another program, use another one",
                    state.batch, state.epoch, plan_.steps(), record().epochs));
  }
  // A state at the end of an epoch has its callbacks still to come. Loading may begin with the next epoch meanwhile.
  const EpochPlan::Position first = plan_.position(state, record());
  loader_ = session_.samples_.open(plan_.data(), {.first_epoch = first.pass,
                                                  .first_batch = first.batch,
                                                  .end_epoch = plan_.end_pass(state, record()),
                                                  .shards_together = shards_together(),
                                                  .batches_together = EpochPlan::batches_together(record())});
}

// Before a step, on every rank alike: the number of replicas is that of the generation, or stands in a list that all
// ranks were given. docs/decisions/batch-size.md
void FitCourse::settle_batch() {
  if (!record().per_replica) return;
  const std::int64_t step = training_.state.step;
  CallRecord::PerReplica& batch = *record().per_replica;
  const std::vector<BatchChange>& replay = options_.global_batch.replay;
  int replicas = training_.context->size;
  if (!replay.empty()) {
    require_replay(batch.changes, replay, step);
    replicas = replicas_at(replay, step);
  }
  const bool is_as_before = !batch.changes.empty() && batch.replicas() == replicas;
  note_replicas(batch.changes, step, replicas);
  if (is_as_before) return;
  loader_.reset();
  if (!training_.is_primary()) return;
  const std::int64_t samples = replicas * plan_.data().batch_size();
  log(LogLevel::info,
      fmt::format("from step {} on a batch has {} samples, those of {} replicas", step, samples, replicas));
  nlohmann::json detail{{"step", step}, {"replicas", replicas}, {"samples", samples}};
  if (batch.rate_for_replicas > 0) detail["rate_for_replicas"] = batch.rate_for_replicas;
  training_.supervision.report_event("batch_changed", detail.dump());
}

// Empty if what comes after a step is due first. The generation may have ended between a callback's request to end
// fit() and that end, or at the end of an epoch.
std::optional<Batch> FitCourse::next_batch() {
  TrainState& state = training_.state;
  const bool is_due = !is_step_open_ && !is_epoch_done() && state.stage != FitStage::ending;
  if (is_due) settle_batch();
  if (loader_ == nullptr) open_data();
  if (!is_due) return std::nullopt;
  if (state.stage == FitStage::before_epoch) begin_epoch();
  training_.enter(TrainingPhase::reading_data);
  training_.runner->reach(FaultPoint::data, state.step);
  std::optional<Batch> batch = loader_->next();
  // The loader and the state count for themselves. A difference would train on other samples without a message.
  const EpochPlan::Position due = plan_.position(state, record());
  HOLDFAST_ASSERT(batch.has_value() && batch->epoch == due.pass && batch->index == due.batch);
  return batch;
}

void FitCourse::note_step(const Batch& batch, const StepOutcome& outcome) {
  count_step(batch, outcome);
  logs_ = end_step();
  is_step_open_ = true;
}

void FitCourse::finish_step() {
  is_step_open_ = false;
  const bool is_ending = training_.state.stage == FitStage::ending;
  // A savepoint or the result of fit() must not come from a state that differs between the ranks.
  if (is_epoch_done() || is_ending) session_.agreement_.agree();
  if (is_epoch_done()) {
    end_epoch();
  } else if (is_ending) {
    record().results = means_of_epoch();
    end_fit();
  }
  if (record().is_finished) return;
  if (training_.state.stage == FitStage::in_epoch) begin_step();
  // After all callbacks of this moment: otherwise the savepoint would hold the state of later callbacks one call late.
  session_.saver_.save(context_->take_pending());
  // The request came with the sums of the step, so every rank is here with the state of the same step.
  if (std::exchange(session_.asked_.comparison, false)) session_.memory_saver_.keep();
  if (std::exchange(session_.asked_.savepoint, false)) session_.saver_.save_on_request();
  session_.end_where_asked();
}

}  // namespace holdfast
