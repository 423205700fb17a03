#pragma once

// What a Trainer is inside: the state of the run, its way in from the newest savepoint, its way out through the writer,
// and the numbered fit() and evaluate() calls.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/train/trainer.h"
#include "train/place.h"
#include "train/savepoint_journal.h"
#include "train/savepoint_writer.h"
#include "train/step_runner.h"
#include "train/train_state.h"

namespace holdfast {

class Trainer::Session {
 public:
  // `owned` may be empty when the application owns the Trainable.
  Session(Replica& replica, std::unique_ptr<Trainable> owned, Trainable& trainable);
  ~Session();

  FitResult fit(const Dataset& data, const FitOptions& options);
  Logs evaluate(const Dataset& data);
  Tensor predict(const Tensor& features, std::int64_t batch_size);
  Digest save(const std::string& path) const;
  Digest weights_digest() const;
  std::int64_t step() const { return state_.step; }

 private:
  class FitContext;

  // Joining a run: rank 0 looks for a savepoint, all ranks get what it found.
  void join_run();
  std::string find_state();
  void broadcast_text(std::string& text);
  void check_arithmetic();

  // The record of the next call: the recorded one where the run had come that far, else a new one.
  CallRecord& join_call(const std::string& kind, const Dataset& data, std::int64_t epochs);
  void check_data(const Dataset& data, const char* purpose) const;
  std::unique_ptr<BatchLoader> open_loader(const Dataset& data, std::int64_t epoch, std::int64_t batch,
                                           std::int64_t end_epoch) const;

  // fit.cpp
  void begin_fit(CallRecord& record, FitContext& context, const FitOptions& options);
  Logs train_step(CallRecord& record, const Batch& batch);
  void end_epoch(CallRecord& record, FitContext& context, const FitOptions& options);
  void end_fit(CallRecord& record, FitContext& context, const FitOptions& options);
  Logs evaluation_pass(const Dataset& data);
  std::string callback_key(const Callback& callback) const;
  void collect_callback_states(const FitOptions& options);

  void save_pending(FitContext& context, const FitOptions& options);
  void submit_savepoint(const std::string& path, SaveOptions options);
  void flush_savepoints();
  // Calls act(), then the callbacks with what has happened to savepoints so far, then rethrows what act() threw.
  void act_and_tell(const FitOptions& options, const std::function<void()>& act);
  Deadline save_deadline() const;
  void save_before_stop();
  [[noreturn]] void stop();

  const std::shared_ptr<Replica::Place> place_;
  const std::unique_ptr<Trainable> owned_;
  Trainable& trainable_;
  Supervision& supervision_;

  TrainState state_;
  std::size_t calls_made_ = 0;
  bool is_stop_requested_ = false;
  const FitOptions* running_fit_ = nullptr;  // whose callbacks' state belongs into a savepoint

  StepRunner runner_;
  std::atomic<std::int64_t> written_step_{0};  // of the savepoint that the writer thread is at
  std::unique_ptr<FileSystem> files_;
  SavepointJournal savepoint_journal_;
  SavepointWriter writer_;
};

}  // namespace holdfast
