// The way out: savepoints through the writer, and the stop that leaves one.

#include <algorithm>
#include <utility>

#include "holdfast/base/log.h"
#include "train/fit/session.h"
#include "train/state/resume.h"

namespace holdfast {
namespace {

// A write that takes longer than this is taken for stuck.
constexpr auto kSaveTimeout = std::chrono::minutes(10);
// For a place, for those under way, and for the last one: who waits for all of them gives up after whoever writes.
constexpr auto kAllSavesTimeout = 3 * kSaveTimeout;

}  // namespace

// Peers wait in a collective meanwhile. They must not give up before this replica has said what is wrong.
Deadline Trainer::Session::save_deadline() const {
  if (place_->size == 1) return Deadline::after(kSaveTimeout);
  return Deadline::after(std::min<Deadline::Clock::duration>(kSaveTimeout, place_->collective_timeout * 3 / 4));
}

bool Trainer::Session::submit_savepoint(const std::string& path, SaveOptions options,
                                        std::function<void(const std::string& why)> when_failed) {
  if (options.threads == 0) options.threads = place_->saving_threads;
  return submit({.path = path,
                 .step = state_.step,
                 .take_snapshot = [this] { return snapshot_to_save(); },
                 .options = std::move(options),
                 .when_failed = std::move(when_failed)});
}

// From a device it comes while training goes on.
Snapshot Trainer::Session::snapshot_to_save() {
  if (trainable_.memory().is_host()) return agreed(take_snapshot(state_, trainable_));
  std::vector<std::span<const float>> arrays;
  for (const StateSpan& span : trainable_.state()) arrays.push_back(span.values);
  const std::shared_ptr<HeldArrays> held = hold(arrays);
  require_unchanged(held->digest());
  return send_snapshot(state_, trainable_, held);
}

std::shared_ptr<HeldArrays> Trainer::Session::hold(std::span<const std::span<const float>> arrays) {
  std::shared_ptr<HeldArrays> held = trainable_.memory().hold(arrays);
  const std::string obstacle = held->obstacle();
  if (!obstacle.empty() && !std::exchange(has_told_obstacle_, true)) {
    log(LogLevel::warning, "replica " + std::to_string(place_->rank) +
                               ": training stands still while its state is copied to the host: " + obstacle);
  }
  return held;
}

bool Trainer::Session::submit(SavepointWriter::Request request) {
  const auto show_life = [this] { supervision_.enter(TrainingPhase::saving, state_.step); };
  show_life();
  return writer_.submit(std::move(request), save_deadline(), show_life);
}

void Trainer::Session::flush_savepoints() {
  const auto show_life = [this] { supervision_.enter(TrainingPhase::saving, state_.step); };
  show_life();
  writer_.flush(save_deadline(), show_life);
}

// Without a copy, which would take as much memory once more, and time that a preempted process may not have: nobody
// changes the state meanwhile. And with all cores, since the other replicas of this host wait.
void Trainer::Session::lend_state_to_writer(const std::function<void()>& when_kept,
                                            std::function<void(const std::string& why)> when_failed) {
  const std::string name = savepoint_name(state_.step);
  const auto keep = make_savepoint_keeper(files_, place_->run_directory, place_->savepoint_copies,
                                          {.keep_last = 0, .threads = place_->cores});
  const auto when_durable = [keep, name, when_kept] {
    keep(name);
    if (when_kept) when_kept();
  };
  is_state_lent_ = true;
  submit({.path = place_->run_directory + "/" + name,
          .step = state_.step,
          .take_snapshot = [this] { return agreed(view_of(state_, trainable_)); },
          .options = {.threads = place_->cores, .when_durable = when_durable},
          .when_failed = std::move(when_failed)});
  take_state_back();
}

void Trainer::Session::save_before_stop() {
  while_storage_fails([&] { flush_savepoints(); });
  lend_state_to_writer();
}

// Nobody asked for this savepoint. Where it cannot be written, results and weights are still there, and the program may
// save them elsewhere.
void Trainer::Session::keep_final_state() {
  const auto warn = [step = state_.step](const std::string& why) {
    log(LogLevel::error, "the state that fit() ended with at step " + std::to_string(step) +
                             " could not be kept as a savepoint of the run, so that the run cannot be resumed from "
                             "there: " +
                             why);
  };
  const std::string name = savepoint_name(state_.step);
  try {
    files_.create_folders(place_->run_directory);
    if (files_.exists(place_->run_directory + "/" + name)) return;
  } catch (const Error& failure) {
    return warn(failure.what());
  }
  lend_state_to_writer([this, name] { remove_final_savepoint(std::exchange(final_savepoint_, name)); }, warn);
}

// The final savepoint of an earlier fit() of this program; otherwise each fit() would leave one.
void Trainer::Session::remove_final_savepoint(const std::string& name) {
  if (name.empty()) return;
  std::vector<std::string> folders = place_->savepoint_copies;
  folders.push_back(place_->run_directory);
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + name;
    try {
      if (!files_.exists(path)) continue;
      files_.remove(path);
      files_.sync_folder(folder);
    } catch (const Error& failure) {
      log(LogLevel::warning, "savepoint " + path + " of an earlier fit() stays: " + failure.what());
    }
  }
}

void Trainer::Session::take_state_back() {
  if (!is_state_lent_) return;
  flush_savepoints();
  is_state_lent_ = false;
}

void Trainer::Session::wait_for_savepoints() {
  supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
  runner_->communicator().barrier(Deadline::after(kAllSavesTimeout));
}

// All ranks come here after the same step. The others wait for the savepoint, so that none ends before the state is
// durable.
void Trainer::Session::stop() {
  if (!place_->run_directory.empty() && place_->writes_files) {
    agree();
    if (place_->rank == 0) {
      if (running_fit_ == nullptr) {
        save_before_stop();
      } else {
        collect_callback_states(*running_fit_);
        act_and_tell(*running_fit_, [&] { save_before_stop(); });
      }
    }
    wait_for_savepoints();
    // What is left to do is to give memory back, and nobody waits for it.
    supervision_.enter(TrainingPhase::finishing, state_.step);
  }
  throw StopRequested{};
}

}  // namespace holdfast
