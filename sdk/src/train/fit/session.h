#pragma once

// What a Trainer is inside: the state of the run, its way in from the newest savepoint, its way out through the writer,
// and the numbered fit() and evaluate() calls. Its functions stand in session.cpp, session_generation.cpp,
// session_disputes.cpp, session_savepoints.cpp and fit.cpp.

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/train/trainer.h"
#include "train/context/place.h"
#include "train/saving/memory_snapshot_keeper.h"
#include "train/saving/memory_snapshot_schedule.h"
#include "train/saving/savepoint_journal.h"
#include "train/saving/savepoint_writer.h"
#include "train/state/snapshot.h"
#include "train/state/train_state.h"
#include "train/step/step_runner.h"
#include "train/step/warm_up.h"

namespace holdfast {

// Thrown to the call that is running: the state is given up for the last one that all replicas agreed on.
struct RollBack {};

class Trainer::Session {
 public:
  // `owned` may be empty when the application owns the Trainable. The process becomes part of a generation with the
  // first call of any of the functions below: a spare has all behind it that comes before.
  Session(Replica& replica, std::unique_ptr<Trainable> owned, Trainable& trainable);
  ~Session();

  FitResult fit(const Dataset& data, const FitOptions& options);
  Logs evaluate(const Dataset& data);
  Tensor predict(const Tensor& features, std::int64_t batch_size);
  Digest save(const std::string& path);
  Digest weights_digest();
  std::int64_t step();

 private:
  class FitContext;

  struct PendingSave {
    std::string path;
    SaveOptions options;
  };

  // How far a rank has come, compared in the order of the fields; all zero without a state.
  struct Position {
    std::int64_t has_state = 0;
    std::int64_t calls = 0;
    std::int64_t finished_calls = 0;
    std::int64_t epoch = 0;
    std::int64_t batch = 0;
    std::int64_t step = 0;
    std::int64_t is_epoch_begun = 0;
    std::int64_t is_closed = 0;

    auto operator<=>(const Position&) const = default;
  };

  // What the ranks of a generation tell each other first.
  struct Standing {
    Position position{};
    std::int64_t is_doubtful = 0;       // its comparison with the others' was cut off
    std::int64_t rolled_back_step = 0;  // what it found to be wrong; 0: nothing
  };

  // session.cpp
  void prepare_workers();
  void check_data(const Dataset& data, const char* purpose) const;
  // The index of the next call's record: the recorded one where the run had come that far, else a new one.
  std::size_t join_call(const std::string& kind, const Dataset& data, std::int64_t epochs);
  CallRecord& record_of(std::size_t call) { return state_.calls.at(call); }
  // After a generation: the state is at this call, too.
  void rejoin_call(const CallRecord& call);
  std::unique_ptr<BatchLoader> open_loader(const Dataset& data, std::int64_t epoch, std::int64_t batch,
                                           std::int64_t end_epoch);
  SampleWays sample_ways(const Dataset& data);
  SampleFeeds stage(const Dataset& data, const HostRows& rows);
  // Acts until the call is finished: again, from wherever the state is then, after each end of a generation.
  void carry_through(std::size_t call, const std::function<void()>& act);

  // session_generation.cpp
  // Becomes part of the first generation, once. With data that is to be trained on or evaluated, all is warm then.
  void join();
  void join(const Dataset& data, WarmUp what);
  // Blocks until this process is part of a new generation and all its ranks stand at the same state: the newest that
  // any of them has, or the one that rank 0 finds. Again and again, where generations end meanwhile.
  void enter_generation();
  Position position() const;
  std::vector<Standing> exchange_standings();
  void settle_state();
  void tell_of_other_order();
  void drop_disputed_state(std::vector<Standing>& standings);
  void finish_savepoints_under_way();
  void share_newest_state(const std::vector<Standing>& standings);
  void load_state();
  void begin_anew();
  void share_state(int root, bool takes);
  std::string share_text(std::string text, int root);
  void share_arrays(int root, bool takes);
  void take_state(const std::string& text);

  // session_disputes.cpp
  Digest state_digest() const;
  // All ranks at the same point: throws RollBack unless all hold the same state, and the Error of a replica that was
  // wrong before.
  void agree();
  void agree(const Digest& own);
  void require_unchanged(const Digest& copied) const;
  Snapshot agreed(Snapshot snapshot) const;
  void settle_dispute(const Digest& agreed);
  [[noreturn]] void roll_back(std::int64_t step, const std::string& why);
  void require_finite();
  std::vector<bool> must_be_finite() const;
  void on_not_finite(const std::string& what, const FitOptions& options);
  [[noreturn]] void go_back_or_end(std::int64_t step, const std::string& sentence, const std::string& advice,
                                   const FitOptions& options);
  // Nothing of the step was applied, since the gradients differed when it was computed again.
  [[noreturn]] void settle_gradients(const StepRunner::Outcome& outcome, const FitOptions& options);
  // Behind a step, right in the end, that this rank may first have computed wrongly; `step` is its number.
  void leave_if_wrong(const StepRunner::Outcome& outcome, std::int64_t step, const FitOptions& options);

  // session_savepoints.cpp
  Deadline save_deadline() const;
  // False where the storage is slow and the options say that it is not made then. Who gives `when_failed` is told of
  // a failed write, and training goes on.
  bool submit_savepoint(const std::string& path, SaveOptions options,
                        std::function<void(const std::string& why)> when_failed = {});
  bool submit(SavepointWriter::Request request);
  // The state that was agreed on, for the writer.
  Snapshot snapshot_to_save();
  std::shared_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays);
  void flush_savepoints();
  // Writes the state into the run directory, and waits for that. `when_kept` is called on the writer's thread.
  void lend_state_to_writer(const std::function<void()>& when_kept = {},
                            std::function<void(const std::string& why)> when_failed = {});
  void save_before_stop();
  // Called by rank 0 once its savepoints are durable: writes fit()'s final state into the run directory, unless it is
  // there.
  void keep_final_state();
  void remove_final_savepoint(const std::string& name);
  // Who goes on although a stop's savepoint was not durable in time must not change what is still being written.
  void take_state_back();
  // By all ranks, of which rank 0 has them durable by then.
  void wait_for_savepoints();
  [[noreturn]] void stop();

  // session_longer.cpp: a fit() that is to have more epochs than the run had.
  void give_more_epochs(std::size_t call, std::int64_t epochs);
  void go_back_before_later_fit(std::size_t call);

  // fit.cpp
  void begin_fit(FitContext& context, const FitOptions& options);
  void continue_fit(std::size_t call, FitContext& context, const Dataset& data, const FitOptions& options);
  void restore_callbacks(const FitOptions& options);
  Logs train_step(CallRecord& record, const Batch& batch, const Dataset& data, const FitOptions& options);
  StepRunner::Outcome compute_step(const Batch& batch, const Dataset& data, const FitOptions& options);
  void end_epoch(CallRecord& record, FitContext& context, const FitOptions& options);
  void end_fit(CallRecord& record, FitContext& context, const FitOptions& options);
  Logs means_so_far(const CallRecord& record) const;
  Logs evaluation_pass(const Dataset& data);
  std::string callback_key(const Callback& callback) const;
  void collect_callback_states(const FitOptions& options);
  bool is_memory_snapshot_due();
  void keep_in_memory(const FitOptions& options);
  void keep_devices_state(const FitOptions& options);
  void close_fit(FitContext& context, const FitOptions& options);
  void save_pending(FitContext& context, const FitOptions& options);
  void submit_all(const std::vector<PendingSave>& pending, const FitOptions& options);
  void while_storage_fails(const std::function<void()>& act);
  // What somebody outside asked for, at the same step on every rank. Training goes on, whatever becomes of it.
  void save_on_request(const FitOptions& options);
  bool submit_requested_savepoint(int number, const std::function<void(const std::string& why)>& when_failed);
  // Calls act(), then the callbacks with what has happened to savepoints so far, then rethrows what act() threw.
  void act_and_tell(const FitOptions& options, const std::function<void()>& act);

  const std::shared_ptr<Replica::Place> place_;
  const std::unique_ptr<Trainable> owned_;
  Trainable& trainable_;
  Supervision& supervision_;
  FileSystem& files_;  // through which savepoints are written, read back and deleted

  TrainState state_;
  bool has_joined_ = false;
  std::size_t calls_made_ = 0;
  bool has_state_ = false;                 // false also while another rank's is being taken
  bool has_taken_state_ = false;           // since the callbacks were given theirs
  bool is_epoch_begun_ = false;            // on_epoch_begin() was called for the epoch that is under way
  bool is_end_asked_ = false;              // a callback has asked for the end of fit() after this state
  bool is_extended_ = false;               // fit() had ended, and goes on for more epochs: callbacks do not know yet
  std::optional<std::size_t> wanted_end_;  // the state to be found is of this fit(), and of no later one
  bool is_closing_ = false;                // fit() has finished, and nobody knows yet that its savepoints are durable
  bool is_stop_requested_ = false;
  bool is_regroup_requested_ = false;
  bool is_comparison_requested_ = false;
  bool is_savepoint_requested_ = false;
  bool is_state_lent_ = false;               // to the writer, until that is done
  std::string final_savepoint_;              // that this process wrote of its own accord: a file's name
  const FitOptions* running_fit_ = nullptr;  // whose callbacks' state belongs into a savepoint

  // A disagreement, or a step that was not finite, that is being computed again.
  struct Dispute {
    std::int64_t step = 0;
    std::optional<Digest> own{};  // empty: the step was not finite
    std::vector<Digest> all{};    // by rank
  };
  std::optional<Dispute> dispute_;

  bool is_doubtful_ = false;           // while the state is compared with the others'
  std::int64_t rolled_back_step_ = 0;  // whose state was found to be wrong, until all others know; 0: none
  std::string rolled_back_why_;        // empty where another rank found it
  Digest agreed_{};                    // of the state, when it was compared last

  // One for each source.
  std::vector<std::unique_ptr<ResidentSamples>> resident_samples_;
  std::vector<std::unique_ptr<PinnedSamples>> pinned_samples_;
  bool can_stage_ = true;  // as far as is known
  int prepared_workers_ = 0;
  std::optional<StepRunner> runner_;  // of the newest generation
  MemorySnapshotSchedule memory_schedule_;
  MemorySnapshotKeeper memory_keeper_;  // of states on devices
  bool has_told_obstacle_ = false;      // why these stop training
  SavepointJournal savepoint_journal_;
  SavepointWriter writer_;
};

}  // namespace holdfast
