// fit() and the pass of evaluate(): data -> step -> callbacks -> savepoint.

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "data/shared_samples.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "train/context/other_choices.h"
#include "train/fit/session.h"
#include "train/state/monitor.h"
#include "train/state/resume.h"
#include "train/state/run_results.h"

namespace holdfast {
namespace {

Logs means(const std::vector<std::string>& names, const std::vector<double>& sums, std::int64_t samples) {
  Logs logs;
  for (std::size_t i = 0; i < names.size(); ++i) logs[names[i]] = sums[i] / static_cast<double>(samples);
  return logs;
}

void add(std::vector<double>& sums, const std::vector<double>& summands) {
  sums.resize(summands.size());
  for (std::size_t i = 0; i < summands.size(); ++i) sums[i] += summands[i];
}

// What may be otherwise the next time, and costs a savepoint, not the training.
bool is_of_the_storage(ErrorCode code) {
  return code == ErrorCode::disk_full || code == ErrorCode::input_output || code == ErrorCode::refused ||
         code == ErrorCode::invalid_file;
}

void require_sense(const GradientChecks& checks) {
  if (checks.every >= 0 && checks.shards >= 0) return;
  throw Error(ErrorCode::invalid_argument, "fit() with check_gradients of " + std::to_string(checks.shards) +
                                               " shards every " + std::to_string(checks.every) +
                                               " steps: neither can be negative; every = 0 makes none");
}

void require_distinct_names(const std::vector<CallbackHandle>& callbacks) {
  std::set<std::string> names;
  for (const CallbackHandle& callback : callbacks) {
    if (!names.insert(callback->name()).second) {
      throw Error(ErrorCode::invalid_argument, "two callbacks of one fit() are called \"" + callback->name() +
                                                   "\"; their state needs names of their own");
    }
  }
}

// The state may lack what a callback asks it for, since the program may have been edited.
void restore_callback(Callback& callback, const CallbackState& state) {
  const auto refuse = [&] {
    std::string keys;
    for (const auto& [key, value] : state) keys += (keys.empty() ? "" : ", ") + key;
    throw OtherChoices(
        "the callback \"" + callback.name() + "\" cannot restore() the state that the run has of it (" +
        (keys.empty() ? "no values" : keys) +
        "): it asks for a value that is not there, or that is of another kind. Use the callback that wrote "
        "it, or " +
        kHowToStartAnew);
  };
  try {
    callback.restore(state);
  } catch (const std::out_of_range&) {
    refuse();
  } catch (const std::bad_variant_access&) {
    refuse();
  }
}

void require_monitored_names(const std::vector<std::string>& sum_names, const FitOptions& options) {
  Logs logged;
  for (const std::string& name : sum_names) {
    logged[name] = 0;
    if (options.validation) logged["val_" + name] = 0;
  }
  for (const CallbackHandle& callback : options.callbacks) {
    for (const std::string& name : callback->monitors()) monitored(logged, name, callback->name());
  }
}

void require_samples_apart(const Dataset& data, const FitOptions& options) {
  if (!options.validation || options.accept_shared_samples) return;
  const std::optional<SharedSamples> common = shared_samples(data, *options.validation);
  if (!common) return;
  throw Error(
      ErrorCode::invalid_argument,
      "fit() would validate on samples that it trains on: " + std::to_string(common->shared) + " of the " +
          std::to_string(common->of_validation) + " samples that can come to validation can come to training, too" +
          (common->are_mixed_by_shuffle
               ? ", since a shuffle() stands before a take() or skip() and brings other samples there in each epoch. "
                 "Write take() and skip() before shuffle(), or let split() do it: "
               : ". Write ") +
          "`const auto [training, validation] = data.split(0.2);`, then training.shuffle() in one place and validation "
          "in the other. To validate on training data on purpose, say .accept_shared_samples = true");
}

}  // namespace

class Trainer::Session::FitContext final : public TrainingContext {
 public:
  FitContext(Session& session, std::size_t call, const Dataset& data)
      : session_(session), call_(call), batches_(data.batches()) {}

  int rank() const override { return session_.place_->rank; }
  int replicas() const override { return session_.place_->size; }
  std::string run_directory() const override { return session_.place_->run_directory; }
  bool writes_files() const override { return session_.place_->writes_files; }
  std::vector<std::string> savepoint_copies() const override { return session_.place_->savepoint_copies; }
  int saving_threads() const override { return session_.place_->saving_threads; }
  FileSystem& file_system() const override { return session_.files_; }
  std::int64_t step() const override { return session_.state_.step; }
  std::int64_t epoch() const override { return session_.state_.epoch; }
  std::int64_t epochs() const override { return record().epochs; }
  std::int64_t batch_in_epoch() const override { return session_.state_.batch; }
  std::int64_t batches_per_epoch() const override { return batches_; }
  std::int64_t samples_in_epoch() const override { return record().epoch_samples; }
  const std::vector<Logs>& history() const override { return record().history; }
  void stop_training() override { session_.is_end_asked_ = true; }
  void save(const std::string& path, const SaveOptions& options) override {
    std::erase_if(pending_, [&](const PendingSave& pending) { return pending.path == path; });
    pending_.push_back({path, options});
  }

  bool is_asked_to_save(const std::string& path) const {
    return std::any_of(pending_.begin(), pending_.end(),
                       [&](const PendingSave& pending) { return pending.path == path; });
  }
  // What was asked for behind a state that is not the one to go on from.
  void forget() { pending_.clear(); }
  std::vector<PendingSave> take_pending() { return std::exchange(pending_, {}); }

 private:
  // Anew each time: the state may have come from another replica meanwhile.
  const CallRecord& record() const { return session_.state_.calls.at(call_); }

  Session& session_;
  const std::size_t call_;
  const std::int64_t batches_;
  std::vector<PendingSave> pending_;
};

FitResult Trainer::Session::fit(const Dataset& data, const FitOptions& options) {
  check_data(data, "fit()");
  if (options.validation) check_data(*options.validation, "fit() for validation");
  if (options.epochs < 1) {
    throw Error(ErrorCode::invalid_argument,
                "fit() of " + std::to_string(options.epochs) + " epochs: there must be at least 1");
  }
  require_distinct_names(options.callbacks);
  require_sense(options.check_gradients);
  require_monitored_names(trainable_.sum_names(), options);
  require_samples_apart(data, options);
  join(data, WarmUp::training);
  const std::size_t call = join_call("fit", data, options.epochs);
  if (record_of(call).is_finished && !is_closing_) {
    place_->results = results_text(state_, weights_digest());
    if (place_->rank == 0) log(LogLevel::info, "this run's fit() had finished at step " + std::to_string(state_.step));
    trainable_.on_fit_end();
    return {record_of(call).results, record_of(call).history};
  }

  FitContext context(*this, call, data);
  begin_fit(context, options);
  bool has_begun = false;
  carry_through(call, [&] {
    if (!record_of(call).is_finished) {
      if (std::exchange(has_begun, true)) context.forget();
      continue_fit(call, context, data, options);
    }
    close_fit(context, options);
  });
  running_fit_ = nullptr;
  trainable_.on_fit_end();
  return {record_of(call).results, record_of(call).history};
}

void Trainer::Session::begin_fit(FitContext& context, const FitOptions& options) {
  running_fit_ = &options;
  const bool is_at_start = state_.epoch == 0 && state_.batch == 0;
  restore_callbacks(options);
  for (const CallbackHandle& callback : options.callbacks) {
    if (is_at_start && !state_.callbacks.contains(callback_key(*callback))) callback->on_fit_begin(context);
  }
}

void Trainer::Session::restore_callbacks(const FitOptions& options) {
  for (const CallbackHandle& callback : options.callbacks) {
    const auto saved = state_.callbacks.find(callback_key(*callback));
    if (saved != state_.callbacks.end()) restore_callback(*callback, saved->second);
  }
  has_taken_state_ = false;
  if (!std::exchange(is_extended_, false)) return;
  const CallRecord& record = record_of(calls_made_ - 1);
  for (const CallbackHandle& callback : options.callbacks) {
    callback->on_fit_extended(state_.step, state_.epoch, record.history.back());
  }
}

// From wherever the state is, until the end or GenerationEnded: everything that it has to know lies in the state.
void Trainer::Session::continue_fit(std::size_t call, FitContext& context, const Dataset& data,
                                    const FitOptions& options) {
  CallRecord& record = record_of(call);
  const bool is_between_epochs = state_.batch == data.batches();
  const auto loader = open_loader(data, state_.epoch + (is_between_epochs ? 1 : 0),
                                  is_between_epochs ? 0 : state_.batch, record.epochs);
  while (!record.is_finished) {
    // The end may have been asked for behind this state when the generation ended.
    if (state_.batch < data.batches() && !is_end_asked_) {
      if (state_.batch == 0 && !is_epoch_begun_) {
        is_epoch_begun_ = true;
        supervision_.enter(TrainingPhase::callbacks, state_.step);
        for (const CallbackHandle& callback : options.callbacks) callback->on_epoch_begin(context);
      }
      supervision_.enter(TrainingPhase::reading_data, state_.step);
      runner_->reach_with_state(FaultPoint::data, state_.step);
      const std::optional<Batch> batch = loader->next();
      HOLDFAST_ASSERT(batch.has_value() && batch->epoch == state_.epoch && batch->index == state_.batch);
      const Logs logs = train_step(record, *batch, data, options);
      runner_->reach_with_state(FaultPoint::callback, state_.step - 1);
      supervision_.enter(TrainingPhase::callbacks, state_.step);
      for (const CallbackHandle& callback : options.callbacks) callback->on_step_end(context, logs);
    }
    if (state_.batch == data.batches() || is_end_asked_) agree();
    if (state_.batch == data.batches()) {
      end_epoch(record, context, options);
    } else if (is_end_asked_) {
      record.results = means_so_far(record);
      end_fit(record, context, options);
    }
    if (record.is_finished) return;
    save_pending(context, options);
    keep_in_memory(options);
    save_on_request(options);
    if (is_stop_requested_) stop();
    if (is_regroup_requested_) throw GenerationEnded("the replicas regroup, as the watchdog asked");
  }
}

// Behind the next step. What the last one took beside training is known first.
bool Trainer::Session::is_memory_snapshot_due() {
  const bool is_writing = memory_keeper_.is_busy();
  if (!is_writing) {
    if (const auto times = memory_keeper_.take_finished()) memory_schedule_.written(times->begin, times->end);
  }
  return place_->rank == 0 && memory_schedule_.is_due(state_.step + 1, place_->now(), is_writing);
}

StepRunner::Outcome Trainer::Session::compute_step(const Batch& batch, const Dataset& data, const FitOptions& options) {
  const bool is_disputed = dispute_ && dispute_->step == state_.step + 1;
  const bool is_due = is_memory_snapshot_due();
  const auto load = [&](ShardRange shards) {
    return LoadedShards(data, place_->seed, place_->shards, shards.begin, shards.end, batch.epoch, batch.index);
  };
  return runner_->train(batch, state_.step,
                        {.requests_comparison = is_due || is_disputed,
                         .applies_what_is_not_finite = options.when_not_finite == WhenNotFinite::go_on,
                         .checked_shards = checked_shards(options.check_gradients, state_.step),
                         .load = load});
}

Logs Trainer::Session::train_step(CallRecord& record, const Batch& batch, const Dataset& data,
                                  const FitOptions& options) {
  const StepRunner::Outcome outcome = compute_step(batch, data, options);
  if (outcome.check && outcome.check->kind != CheckVerdict::Kind::agreed) settle_gradients(outcome, options);
  if (!outcome.not_finite.empty()) {
    leave_if_wrong(outcome, state_.step, options);
    on_not_finite(outcome.not_finite, options);
  }
  ++state_.step;
  ++state_.batch;
  const bool is_skipped = !outcome.not_finite.empty();
  add(record.epoch_sums, is_skipped ? std::vector<double>(outcome.sums.size()) : outcome.sums);
  record.epoch_samples += batch.samples;
  if (is_skipped) record.epoch_skipped_samples += batch.samples;
  is_stop_requested_ = is_stop_requested_ || outcome.is_stop_requested;
  is_regroup_requested_ = is_regroup_requested_ || outcome.is_regroup_requested;
  is_comparison_requested_ = is_comparison_requested_ || outcome.is_comparison_requested;
  is_savepoint_requested_ = is_savepoint_requested_ || outcome.is_savepoint_requested;
  runner_->reach_with_state(FaultPoint::after_update, state_.step - 1);
  // The others have applied the step by now, or do so by themselves.
  if (outcome.not_finite.empty()) leave_if_wrong(outcome, state_.step - 1, options);
  return means_so_far(record);
}

// The means over the steps that were not skipped; NaN where all were.
Logs Trainer::Session::means_so_far(const CallRecord& record) const {
  return means(trainable_.sum_names(), record.epoch_sums, record.epoch_samples - record.epoch_skipped_samples);
}

void Trainer::Session::end_epoch(CallRecord& record, FitContext& context, const FitOptions& options) {
  Logs logs = means_so_far(record);
  if (options.validation) {
    for (const auto& [name, value] : evaluation_pass(*options.validation)) logs["val_" + name] = value;
  }
  supervision_.enter(TrainingPhase::callbacks, state_.step);
  for (const CallbackHandle& callback : options.callbacks) callback->on_epoch_end(context, logs);
  record.results = logs;
  record.history.push_back(logs);
  if (place_->rank == 0 && record.history.size() == 1) {
    supervision_.report_event("first_epoch_finished", nlohmann::json{{"step", state_.step}}.dump());
  }
  record.epoch_sums.clear();
  record.epoch_samples = 0;
  record.epoch_skipped_samples = 0;
  ++state_.epoch;
  state_.batch = 0;
  is_epoch_begun_ = false;
  if (is_end_asked_ || state_.epoch == record.epochs) end_fit(record, context, options);
}

void Trainer::Session::end_fit(CallRecord& record, FitContext& context, const FitOptions& options) {
  record.is_finished = true;
  record.is_ended_by_callback = is_end_asked_ && state_.epoch == record.epochs;
  is_end_asked_ = false;
  is_closing_ = true;
  supervision_.enter(TrainingPhase::callbacks, state_.step);
  for (const CallbackHandle& callback : options.callbacks) callback->on_fit_end(context, record.results);
  // On every rank, so that whoever saves later saves the same.
  collect_callback_states(options);
  const bool has_moved_on = record.own_savepoint_step >= 0 && record.own_savepoint_step != state_.step;
  if (has_moved_on) final_savepoint_ = savepoint_name(record.own_savepoint_step);
  const bool is_kept_by_callback = context.is_asked_to_save(place_->run_directory + "/" + savepoint_name(state_.step));
  record.own_savepoint_step = place_->run_directory.empty() || is_kept_by_callback ? -1 : state_.step;
  if (place_->rank == 0) {
    supervision_.report_event("fit_finished",
                              nlohmann::json{{"step", state_.step}, {"weights_digest", weights_digest().hex()}}.dump());
  }
}

// Behind the last step, until all ranks know that what rank 0 was asked to save is durable. No snapshot in memory is
// taken meanwhile, and nobody else keeps the state if it is cut off (enter_generation()): a run that goes on from a
// finished fit() would never write its last savepoint. The way there is gone once more instead.
void Trainer::Session::close_fit(FitContext& context, const FitOptions& options) {
  memory_keeper_.finish();
  agree();
  if (place_->rank == 0 && place_->writes_files) submit_all(context.take_pending(), options);
  save_on_request(options);
  if (is_stop_requested_) stop();
  if (place_->rank == 0) {
    act_and_tell(options, [&] {
      flush_savepoints();
      if (!place_->run_directory.empty() && place_->writes_files) keep_final_state();
    });
  }
  wait_for_savepoints();
  supervision_.enter(TrainingPhase::callbacks, state_.step);
  is_closing_ = false;
  place_->results = results_text(state_, weights_digest());
}

void Trainer::Session::save_pending(FitContext& context, const FitOptions& options) {
  const std::vector<PendingSave> pending = context.take_pending();
  // On every rank, and whether or not the storage has a place: what is skipped must leave the same state behind.
  if (!place_->writes_files) return;
  if (!pending.empty()) {
    agree();
    collect_callback_states(options);
  }
  if (place_->rank == 0) submit_all(pending, options);
}

void Trainer::Session::submit_all(const std::vector<PendingSave>& pending, const FitOptions& options) {
  act_and_tell(options, [&] {
    while_storage_fails([&] { writer_.check(); });
    for (const PendingSave& save : pending) {
      while_storage_fails([&] { submit_savepoint(save.path, save.options); });
    }
  });
}

// An attempt may tell of the failure of an earlier savepoint, and is made again then; there are at most two of these.
void Trainer::Session::while_storage_fails(const std::function<void()>& act) {
  for (int attempts_left = 2;; --attempts_left) {
    try {
      return act();
    } catch (const Error& failure) {
      if (attempts_left == 0 || !is_of_the_storage(failure.code())) throw;
      log(LogLevel::error,
          std::string("a savepoint failed, and training goes on with those that are there: ") + failure.what());
    }
  }
}

void Trainer::Session::save_on_request(const FitOptions& options) {
  if (!std::exchange(is_savepoint_requested_, false)) return;
  agree();
  collect_callback_states(options);
  if (place_->rank != 0) return;
  const int number = supervision_.begin_requested_savepoint();
  const auto refuse = [this, number](const std::string& why) { supervision_.report_no_savepoint(number, why); };
  act_and_tell(options, [&] {
    try {
      if (!submit_requested_savepoint(number, refuse)) {
        refuse("two savepoints are under way already; ask again when they are written");
      }
    } catch (const Error& failure) {
      if (!is_of_the_storage(failure.code())) throw;
      refuse(std::string("an earlier savepoint failed: ") + failure.what());
    } catch (const std::bad_alloc&) {
      refuse("there is no memory for a copy of the state");
    }
  });
}

bool Trainer::Session::submit_requested_savepoint(int number,
                                                  const std::function<void(const std::string& why)>& when_failed) {
  const std::string name = savepoint_name(state_.step);
  const std::string path = place_->run_directory + "/" + name;
  const auto keep = make_savepoint_keeper(files_, place_->run_directory, place_->savepoint_copies,
                                          {.keep_last = 0, .threads = place_->saving_threads});
  const auto when_durable = [this, keep, name, number, path, step = state_.step] {
    keep(name);
    supervision_.report_savepoint(number, path, step);
  };
  return submit_savepoint(path, {.when_storage_is_slow = WhenStorageIsSlow::skip, .when_durable = when_durable},
                          when_failed);
}

void Trainer::Session::keep_in_memory(const FitOptions& options) {
  if (!std::exchange(is_comparison_requested_, false) || place_->run_directory.empty()) return;
  if (!trainable_.memory().is_host()) return keep_devices_state(options);
  const auto begin = place_->now();
  agree();
  if (place_->rank != 0) return;
  supervision_.enter(TrainingPhase::saving, state_.step);
  runner_->reach_with_state(FaultPoint::snapshot, state_.step);
  collect_callback_states(options);
  const StateImage image = image_of(state_, trainable_);
  const auto prepared_from = place_->now();
  supervision_.prepare_in_memory(image.size_bytes());
  const auto preparation = place_->now() - prepared_from;
  std::optional<Digest> copied;  // empty where there is no such memory
  const auto write = [&](std::size_t at, std::span<std::byte> piece) { image.copy(at, piece); };
  supervision_.keep_in_memory(state_.step, image.size_bytes(), write, [&](std::span<const std::byte> copy) {
    copied = digest(copy.subspan(image.header.size()));
    return *copied == agreed_;
  });
  if (copied) require_unchanged(*copied);
  memory_schedule_.taken(begin + preparation, place_->now());
}

// What the replicas compare is what is on its way to the host: what happens to the state meanwhile is a matter of the
// next comparison. Who has nobody to compare with does not wait for the digest, nor for a look at whether it is finite.
void Trainer::Session::keep_devices_state(const FitOptions& options) {
  if (place_->rank != 0) return agree();
  supervision_.enter(TrainingPhase::saving, state_.step);
  memory_keeper_.finish();
  const auto begin = place_->now();
  runner_->reach_with_state(FaultPoint::snapshot, state_.step);
  collect_callback_states(options);
  StateImage image = image_of(state_, trainable_);
  const std::shared_ptr<HeldArrays> held = hold(image.arrays);
  if (place_->size > 1 || dispute_) agree(held->digest());
  const auto preparation = memory_keeper_.keep({.step = state_.step,
                                                .header = image.header,
                                                .arrays = image.arrays,
                                                .must_be_finite = must_be_finite(),
                                                .held = held},
                                               trainable_.memory());
  memory_schedule_.taken(begin + preparation, place_->now());
}

void Trainer::Session::act_and_tell(const FitOptions& options, const std::function<void()>& act) {
  std::exception_ptr failure;
  try {
    act();
  } catch (...) {
    failure = std::current_exception();
  }
  for (const SavepointEvent& event : writer_.take_events()) {
    supervision_.enter(TrainingPhase::callbacks, state_.step);
    for (const CallbackHandle& callback : options.callbacks) callback->on_savepoint(event);
  }
  if (failure) std::rethrow_exception(failure);
}

Logs Trainer::Session::evaluation_pass(const Dataset& data) {
  const auto loader = open_loader(data, 0, 0, 1);
  std::vector<double> sums;
  std::int64_t samples = 0;
  for (;;) {
    supervision_.enter(TrainingPhase::reading_data, state_.step);
    const std::optional<Batch> batch = loader->next();
    if (!batch) break;
    const StepRunner::Outcome outcome = runner_->evaluate(*batch, state_.step);
    add(sums, outcome.sums);
    samples += batch->samples;
    if (outcome.is_stop_requested) stop();
    if (outcome.is_regroup_requested) throw GenerationEnded("the replicas regroup, as the watchdog asked");
  }
  return means(trainable_.sum_names(), sums, samples);
}

std::string Trainer::Session::callback_key(const Callback& callback) const {
  return std::to_string(calls_made_ - 1) + "/" + callback.name();
}

void Trainer::Session::collect_callback_states(const FitOptions& options) {
  for (const CallbackHandle& callback : options.callbacks)
    state_.callbacks[callback_key(*callback)] = callback->state();
}

}  // namespace holdfast
