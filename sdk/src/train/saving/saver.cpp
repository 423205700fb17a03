// Replicas compare their states before each savepoint, since the run may go back to it. A full or failing disk may have
// room again the next time, so it costs only a savepoint. The last savepoint of fit() must succeed, because nothing
// makes up for it. docs/decisions/savepoints-in-training.md

#include "train/saving/saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "holdfast/base/log.h"
#include "train/saving/callback_states.h"
#include "train/state/resume.h"

namespace holdfast {
namespace {

// A write that takes longer than this is stuck.
constexpr auto kSaveTimeout = std::chrono::minutes(10);
// Ranks that wait must outlast rank 0, which may wait for a queue slot, for two pending writes, and for its own.
constexpr auto kAllSavesTimeout = 3 * kSaveTimeout;

// Failures that may not come again: a disk may have room again, and a network may come back.
bool is_of_the_storage(ErrorCode code) {
  return code == ErrorCode::disk_full || code == ErrorCode::input_output || code == ErrorCode::refused ||
         code == ErrorCode::invalid_file;
}

}  // namespace

Saver::Saver(Training& training, Agreement& agreement, std::shared_ptr<SavingWatch> watch)
    : training_(training),
      agreement_(agreement),
      journal_(training.supervision),
      writer_(
          training.files, [this](const SavepointEvent& event) { journal_.note(event); }, std::move(watch)) {}

// Callbacks' states are collected on every rank, also if rank 0 then skips the savepoint: all ranks must hold the same
// state.
void Saver::save(const std::vector<PendingSave>& pending) {
  if (!training_.context->writes_files) return;
  if (!pending.empty()) {
    agreement_.agree();
    collect_callback_states(training_);
  }
  if (training_.keeps_savepoints()) submit_all(pending);
}

void Saver::submit_all(const std::vector<PendingSave>& pending) {
  act_and_tell_callbacks([&] {
    while_storage_fails([&] { writer_.check(); });
    // The run's own savepoint comes last, since a run that goes on from it does not write the other files again.
    const std::string own = path_of_own();
    for (const bool is_own : {false, true}) {
      for (const PendingSave& save : pending) {
        if ((save.path == own) != is_own) continue;
        while_storage_fails([&] { submit(save.path, save.options); });
      }
    }
  });
}

void Saver::save_on_request() {
  agreement_.agree();
  collect_callback_states(training_);
  if (!training_.keeps_savepoints()) return;
  // The operator gets one answer.
  if (!training_.is_primary()) {
    return act_and_tell_callbacks([&] { while_storage_fails([&] { submit_own({}, {}); }); });
  }
  Supervision& supervision = training_.supervision;
  const int number = supervision.begin_requested_savepoint();
  const auto refuse = [&supervision, number](const std::string& why) { supervision.report_no_savepoint(number, why); };
  act_and_tell_callbacks([&] {
    try {
      if (!submit_requested(number, refuse)) {
        // An operator waits for this answer, so it is given in every case.
        refuse("two savepoints are being written already; ask again when they are done");
      }
    } catch (const Error& failure) {
      if (!is_of_the_storage(failure.code())) throw;
      refuse(fmt::format("an earlier savepoint failed: {}", failure.what()));
    } catch (const std::bad_alloc&) {
      refuse("there is no memory for a copy of the state");
    }
  });
}

bool Saver::submit_requested(int number, const WhenFailed& when_failed) {
  const auto report = [&supervision = training_.supervision, number, path = path_of_own(),
                       step = training_.state.step] { supervision.report_savepoint(number, path, step); };
  return submit_own(report, when_failed);
}

// Begins the run's own savepoint of this state, unless two are under way.
bool Saver::submit_own(const std::function<void()>& when_kept, const WhenFailed& when_failed) {
  return submit(path_of_own(),
                {.when_storage_is_slow = WhenStorageIsSlow::skip,
                 .when_durable = when_durable(training_.context->saving_threads, when_kept)},
                when_failed);
}

std::string Saver::path_of_own() const {
  return training_.context->trainer_directory() + "/" + savepoint_name(training_.state.step);
}

// What follows once a savepoint of the run's own is durable: it is copied, as all are, and deletes none.
std::function<void()> Saver::when_durable(int threads, const std::function<void()>& when_kept) const {
  const Replica::Context& context = *training_.context;
  const auto keep = make_savepoint_keeper(training_.files, context.trainer_directory(), context.copies_of_trainer(),
                                          {.keep_last = 0, .threads = threads});
  return [keep, name = savepoint_name(training_.state.step), when_kept] {
    keep(name);
    if (when_kept) when_kept();
  };
}

void Saver::finish_fit() {
  end_where_storage_fails([&] {
    act_and_tell_callbacks([&] {
      flush();
      if (training_.is_supervised() && training_.context->writes_files) keep_final_state();
    });
  });
  wait_for_rank_0();
}

void Saver::keep_loaded_state(bool is_missing) {
  if (!training_.is_supervised() || !training_.context->writes_files) return;
  agreement_.agree();
  // After the comparison, which all ranks make, also those that have nothing to write.
  if (!is_missing) return;
  const auto warn = [step = training_.state.step](const std::string& why) {
    log(LogLevel::error,
        fmt::format("the state of step {} could not be kept as a savepoint of this host: {}", step, why));
  };
  try {
    lend_state({}, warn);
  } catch (const Error& failure) {
    if (!is_of_the_storage(failure.code())) throw;
    warn(failure.what());
  }
}

// The other ranks wait for the savepoint, so that no process ends before the state is durable.
void Saver::stop() {
  if (training_.is_supervised() && training_.context->writes_files) {
    agreement_.agree();
    if (training_.keeps_savepoints()) collect_callback_states(training_);
    end_where_storage_fails([&] {
      act_and_tell_callbacks([&] {
        while_storage_fails([&] { flush(); });
        lend_state();
      });
    });
    wait_for_rank_0();
    // Memory is all that is left to give back, and nothing waits for that.
    training_.enter(TrainingPhase::finishing);
  }
  throw StopRequested{};
}

void Saver::finish_under_way() {
  while_storage_fails([&] { flush(); });
}

void Saver::take_state_back() {
  if (!is_state_lent_) return;
  flush();
  is_state_lent_ = false;
}

void Saver::replace_final_savepoint(std::int64_t step) {
  final_savepoint_ = savepoint_name(step);
}

std::shared_ptr<HeldArrays> Saver::hold(std::span<const std::span<const float>> arrays) {
  std::shared_ptr<HeldArrays> held = training_.trainable.memory().hold(arrays);
  const std::string obstacle = held->obstacle();
  if (!obstacle.empty() && !std::exchange(has_warned_of_copies_, true)) {
    log(LogLevel::warning, fmt::format("replica {}: training stands still while its state is copied to the host: {}",
                                       training_.context->rank, obstacle));
  }
  return held;
}

// The other ranks wait in a collective meanwhile. They must not give up before this one has said what is wrong.
Deadline Saver::deadline() const {
  if (training_.context->size == 1) return Deadline::after(kSaveTimeout);
  return Deadline::after(
      std::min<Deadline::Clock::duration>(kSaveTimeout, training_.context->collective_timeout * 3 / 4));
}

bool Saver::submit(SavepointWriter::Request request) {
  const auto show_life = [this] { training_.enter(TrainingPhase::saving); };
  show_life();
  journal_.speak(training_.is_primary());
  return writer_.submit(std::move(request), deadline(), show_life);
}

bool Saver::submit(const std::string& path, SaveOptions options, WhenFailed when_failed) {
  if (options.threads == 0) options.threads = training_.context->saving_threads;
  return submit({.path = path,
                 .step = training_.state.step,
                 .take_snapshot =
                     [this, weights_only = options.weights_only, weights = options.weights] {
                       if (!weights_only) return snapshot();
                       Snapshot copy = snapshot();
                       // Only the copy gets the averages: training goes on with its own parameters.
                       if (weights == Weights::averaged) use_averages(copy, "the training state");
                       return weights_alone(std::move(copy), training_.trainable);
                     },
                 .options = std::move(options),
                 .when_failed = std::move(when_failed)});
}

// A device's state arrives while training goes on.
Snapshot Saver::snapshot() {
  const StateArrays arrays = training_.state_arrays();
  if (arrays.memory().is_host()) return agreement_.require_unchanged(take_snapshot(training_.state, arrays));
  const std::shared_ptr<HeldArrays> held = hold(training_.arrays());
  agreement_.require_unchanged(held->digest());
  return send_snapshot(training_.state, arrays, held);
}

void Saver::flush() {
  const auto show_life = [this] { training_.enter(TrainingPhase::saving); };
  show_life();
  writer_.flush(deadline(), show_life);
}

// Writes the state itself, not a copy, and waits: a copy takes as much memory again, and time that a preempted process
// may not have. With all cores, since the other replicas of this host wait. `when_kept` is called on the writer's
// thread.
void Saver::lend_state(const std::function<void()>& when_kept, WhenFailed when_failed) {
  const Replica::Context& context = *training_.context;
  is_state_lent_ = true;
  submit({.path = path_of_own(),
          .step = training_.state.step,
          .take_snapshot =
              [this] { return agreement_.require_unchanged(view_of(training_.state, training_.state_arrays())); },
          .options = {.threads = context.cores, .when_durable = when_durable(context.cores, when_kept)},
          .when_failed = std::move(when_failed)});
  take_state_back();
}

// No callback asked for this savepoint. If it cannot be written, results and weights are still in memory, and the
// program may save them elsewhere.
void Saver::keep_final_state() {
  const auto warn = [step = training_.state.step](const std::string& why) {
    log(LogLevel::error, fmt::format("the state that fit() ended with at step {} could not be kept as a savepoint, so "
                                     "the run cannot be resumed from there: {}",
                                     step, why));
  };
  const std::string directory = training_.context->trainer_directory();
  const std::string name = savepoint_name(training_.state.step);
  try {
    training_.files.create_folders(directory);
    if (training_.files.exists(directory + "/" + name)) return;
  } catch (const Error& failure) {
    return warn(failure.what());
  }
  lend_state([this, name] { remove_from_all_folders(std::exchange(final_savepoint_, name)); }, warn);
}

// The final savepoint of an earlier fit() of this program; otherwise each fit() would leave one.
void Saver::remove_from_all_folders(const std::string& name) {
  if (name.empty()) return;
  std::vector<std::string> folders = training_.context->copies_of_trainer();
  folders.push_back(training_.context->trainer_directory());
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + name;
    try {
      if (!training_.files.exists(path)) continue;
      training_.files.remove(path);
      training_.files.sync_folder(folder);
    } catch (const Error& failure) {
      log(LogLevel::warning,
          fmt::format("savepoint {} of an earlier fit() could not be removed: {}", path, failure.what()));
    }
  }
}

// For savepoints that nothing makes up for. Where each host has a folder, a failure on one of them costs the others
// nothing: all have written before rank 0, whose savepoints count, ends by its own, and another rank only says so.
void Saver::end_where_storage_fails(const std::function<void()>& act) {
  const bool has_own_folders = training_.context->has_own_folders;
  std::exception_ptr failure;
  if (training_.keeps_savepoints()) {
    try {
      act();
    } catch (const Error& error) {
      if (!has_own_folders || !is_of_the_storage(error.code())) throw;
      if (training_.is_primary()) {
        failure = std::current_exception();
      } else {
        log(LogLevel::error, fmt::format("the last savepoint of this host failed, and the run ends with those of the "
                                         "others: {}",
                                         error.what()));
      }
    }
  }
  if (!has_own_folders) return;
  wait_for_rank_0();
  if (failure) std::rethrow_exception(failure);
}

void Saver::wait_for_rank_0() {
  training_.enter(TrainingPhase::waiting_for_peers);
  training_.runner->communicator().barrier(Deadline::after(kAllSavesTimeout));
}

// An attempt may rethrow the failure of an earlier savepoint, and is made again then; at most two are under way.
void Saver::while_storage_fails(const std::function<void()>& act) {
  for (int attempts_left = 2;; --attempts_left) {
    try {
      return act();
    } catch (const Error& failure) {
      if (attempts_left == 0 || !is_of_the_storage(failure.code())) throw;
      log(LogLevel::error,
          fmt::format("a savepoint failed, and training goes on with the earlier ones: {}", failure.what()));
    }
  }
}

// Callbacks learn what has happened to savepoints before a failure ends fit().
void Saver::act_and_tell_callbacks(const std::function<void()>& act) {
  std::exception_ptr failure;
  try {
    act();
  } catch (...) {
    failure = std::current_exception();
  }
  if (training_.running_fit != nullptr) {
    for (const SavepointEvent& event : writer_.take_events()) {
      if (!training_.is_primary()) continue;
      training_.enter(TrainingPhase::callbacks);
      for (const CallbackHandle& callback : training_.running_fit->callbacks) callback->on_savepoint(event);
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace holdfast
