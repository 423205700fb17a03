#pragma once

// How a Trainer's state becomes savepoints: at the request of callbacks or of an operator, at a stop, and at the end of
// fit(). Rank 0 writes, in a thread of its own while training goes on; where each host has a run directory of its own,
// the first rank of each host does. Before that, all ranks compare their states.
// docs/decisions/savepoints-in-training.md

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/core/memory_space.h"
#include "train/agreement/agreement.h"
#include "train/saving/savepoint_journal.h"
#include "train/saving/savepoint_writer.h"
#include "train/step/training.h"

namespace holdfast {

// What a callback asked for with TrainingContext::save().
struct PendingSave {
  std::string path;
  SaveOptions options;
  bool is_of_end = false;  // asked for by on_fit_end(): of the state that fit() leaves
};

// Only the training thread uses it. Functions marked "all ranks" are called by every rank at the same step.
class Saver {
 public:
  Saver(Training& training, Agreement& agreement, std::shared_ptr<SavingWatch> watch);

  // All ranks: begins what callbacks asked for. A storage that fails costs a savepoint, not the training.
  void save(const std::vector<PendingSave>& pending);
  // All ranks: begins a savepoint of the run that an operator asked for.
  void save_on_request();
  // A rank that keeps savepoints, when all ranks have agreed on the state: begins what callbacks asked for.
  void submit_all(const std::vector<PendingSave>& pending);
  // All ranks, after a state was loaded: writes it on those that have no savepoint of it. A storage that fails costs
  // only that.
  void keep_loaded_state(bool is_missing);
  // All ranks, once fit() has finished: blocks until the final state and all that was begun are durable.
  void finish_fit();
  // All ranks: leaves a savepoint, which is durable on every rank's return, and throws StopRequested.
  [[noreturn]] void stop();

  // Blocks until what was begun is durable. A storage that fails costs these savepoints.
  void finish_under_way();
  // A stop's savepoint may still be written although the program goes on: blocks until training may change the state.
  void take_state_back();
  // Call this when fit() goes on after it had saved its final state at that step. The savepoint is deleted once the
  // next final one is durable, because a run with these epochs from the start would not have it.
  void replace_final_savepoint(std::int64_t step);

  // Holds a device's arrays while they are copied to the host. Warns once if training must wait for the copy.
  std::shared_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays);

 private:
  // Called when a write fails; the failure does not end training then.
  using WhenFailed = std::function<void(const std::string& why)>;

  Deadline deadline() const;
  bool submit(SavepointWriter::Request request);
  bool submit(const std::string& path, SaveOptions options, WhenFailed when_failed = {});
  bool submit_requested(int number, const WhenFailed& when_failed);
  bool submit_own(const std::function<void()>& when_kept, const WhenFailed& when_failed);
  std::string path_of_own() const;
  std::function<void()> when_durable(int threads, const std::function<void()>& when_kept) const;
  void flush();
  void lend_state(const std::function<void()>& when_kept = {}, WhenFailed when_failed = {});
  void keep_final_state();
  void end_where_storage_fails(const std::function<void()>& act);
  void remove_from_all_folders(const std::string& name);
  Snapshot snapshot();
  void wait_for_rank_0();
  void while_storage_fails(const std::function<void()>& act);
  void act_and_tell_callbacks(const std::function<void()>& act);

  Training& training_;
  Agreement& agreement_;
  bool is_state_lent_ = false;   // to the writer, until it is done
  std::string final_savepoint_;  // name of a file that this process wrote unasked
  bool has_warned_of_copies_ = false;
  SavepointJournal journal_;
  SavepointWriter writer_;
};

}  // namespace holdfast
