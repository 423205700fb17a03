#pragma once

// Code of the application, or of Holdfast, that fit() calls during training, and evaluate() and predict() if it is
// given to them:
//
//   class PrintLoss final : public Callback {
//    public:
//     std::string name() const override { return "print_loss"; }
//     void on_epoch_end(TrainingContext& context, const Logs& logs) override {
//       if (context.is_primary()) std::printf("epoch %ld: %f\n", context.epoch(), logs.at("loss"));
//     }
//   };
//
// Every rank makes the same calls at the same steps with the same logs, so a callback decides the same everywhere.
// Effects outside the process (files, network) belong on the primary rank alone. What a callback must remember across a
// failure it names in one line, and every savepoint holds it:
//
//   void describe_state(CallbackFields& fields) override { fields.add("epoch", epoch_).add("best", best_); }
//
// It has its values back before the first call after a restart. An exception from a callback ends the training
// function. A callback may block, as an upload does, for as long as RecoveryOptions::callback_timeout allows (10
// minutes by default); the other replicas wait.
//
// After a failure, calls repeat. Training continues from the newest state (of a survivor, a snapshot in memory or a
// savepoint), perhaps with another primary rank, and the calls since that state are made again with the same steps and
// logs. State is restored, but effects outside are not undone: write them under their epoch or step, so that a repeated
// call replaces them. A callback that only appends gets rows twice.

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/best.h"
#include "holdfast/base/file_system.h"
#include "holdfast/core/shape.h"
#include "holdfast/train/callback_state.h"
#include "holdfast/train/profile.h"
#include "holdfast/train/savepoint.h"

namespace holdfast {

// Means by name: "loss", "accuracy" and, with validation data, "val_loss", ... A map, so that all ranks
// see the same order.
using Logs = std::map<std::string, double>;

// A copy of one parameter or buffer of the model.
struct WeightArray {
  std::string name;           // as in savepoints: "model/dense/kernel"
  Shape shape;                // of the array
  std::vector<float> values;  // shape.element_count() of them, row-major
};

// What a callback may see and ask for. Valid only during the call. Ask for changes, savepoints and ends on every rank
// alike, except where a function says otherwise.
//
// For evaluate() and predict(), an epoch has the batches of their data, and none of them is counted as done.
class TrainingContext {
 public:
  virtual ~TrainingContext() = default;

  // This process among the replicas; both numbers may change after a failure.
  virtual int rank() const = 0;
  virtual int replicas() const = 0;                // of this generation
  bool is_primary() const { return rank() == 0; }  // true on one rank alone
  // Counts the memberships of the run. Each failure begins another one, so a time that was taken in an earlier
  // generation is before a recovery.
  virtual int generation() const { return 0; }
  // Whether save() writes on this rank: on the primary rank alone, or, where each host has a run directory of its own,
  // on the first rank of each host.
  virtual bool writes_savepoints() const { return is_primary(); }
  // Where the run keeps its savepoints and its journal; empty if training is not supervised.
  virtual std::string run_directory() const = 0;
  // False while a program is debugged (SuperviseOptions::alone): files of the run then stay as they are.
  virtual bool writes_files() const { return true; }
  // Further folders that receive the savepoints of the run.
  virtual std::vector<std::string> savepoint_copies() const { return {}; }
  // This replica's share of the cores of the host, for work on savepoints; 0: all cores of the process.
  virtual int saving_threads() const { return 0; }
  // The file system through which savepoints are written, read and deleted. It lives as long as the Replica.
  virtual FileSystem& file_system() const { return posix_file_system(); }

  // The number of this fit(), or other call, among all calls of its Trainer, from 0 (run_results.h).
  virtual std::int64_t call() const { return 0; }
  // The number of that Trainer among those of the run, from 0.
  virtual int trainer() const { return 0; }
  // Where training is. In on_step_end() and on_epoch_end() the step and the batch that just ended are counted as done.
  virtual std::int64_t step() const = 0;               // updates applied since the start of the run
  virtual std::int64_t epoch() const = 0;              // from 0
  virtual std::int64_t epochs() const = 0;             // that fit() was asked for
  virtual std::int64_t batch_in_epoch() const = 0;     // batches of this epoch that are done
  virtual std::int64_t batches_per_epoch() const = 0;  // of this epoch
  virtual std::int64_t samples_in_epoch() const = 0;   // samples of this epoch that are done
  // Whether the logs at the end of this epoch hold "val_..." where fit() has validation data; false in
  // the epochs that FitOptions::validation_every leaves out.
  virtual bool is_validated() const { return true; }

  // The logs of each finished epoch of this fit(), as on_epoch_end() received them: the same on every
  // rank, whatever was lost and repeated. Bring files outside the process to this history instead of
  // appending to them, since calls repeat after a failure.
  virtual const std::vector<Logs>& history() const = 0;

  // What history() was at the end of each fit() of this Trainer before this one.
  virtual std::vector<std::vector<Logs>> earlier_histories() const { return {}; }

  // Whether lower or higher values of this log are better ("val_..." as without "val_"); empty where nobody can say.
  // See Metric::best() and Trainable::best_of(). Here, by the name alone.
  virtual std::optional<Best> best_of(const std::string& log) const;

  // The learning rate of the next step; empty if the optimizer has none that callbacks may change.
  virtual std::optional<float> learning_rate() const { return std::nullopt; }
  // Sets it for all later steps, also of later calls of fit(), until it is set again. It is part of the training state
  // and survives every failure; the optimizer's configuration stays as it is. Throws Error{invalid_argument} for a rate
  // that is negative or not finite, and for an optimizer whose rate follows a schedule; Error{unsupported} for one
  // without a rate, or for a Trainable that takes none.
  virtual void set_learning_rate(float rate);

  // The present parameters and buffers, copied to the host: for records of them. Empty without a model.
  virtual std::vector<WeightArray> weights() const { return {}; }
  // The model as JSON, as a savepoint holds it ("graph" in docs/format.md). Empty without a model.
  virtual std::string graph() const { return {}; }

  // Records from now on, on this process alone, what its threads do, until end_profile() returns it. A second call
  // begins anew. Neither is part of the state: after a failure a new process records nothing until it is asked to.
  virtual void begin_profile() {}
  // Empty if nothing was recorded.
  virtual std::vector<ProfileSpan> end_profile() { return {}; }

  // Keeps a copy of the present parameters and buffers in the training state, in place of the one before. It survives
  // every failure, and every savepoint of this fit() holds it. For on_epoch_end() of a callback whose keeps_weights()
  // is true. Throws Error{unsupported} elsewhere.
  virtual void keep_weights();
  // The epoch of the copy; empty before the first keep_weights() of this fit().
  virtual std::optional<std::int64_t> kept_epoch() const { return std::nullopt; }
  // Makes the copy the weights that fit() ends with. For on_fit_end(). The last savepoint of fit() has these weights,
  // and the metrics of their epoch. Without a copy it does nothing.
  virtual void restore_kept_weights();

  // Makes fit() return after the calls of the current epoch or step. From on_epoch_begin() or
  // on_step_begin() it returns after the step that follows.
  virtual void stop_training() = 0;
  // Makes fit() return after the calls of the next step, on all ranks. For what only one rank may know, such
  // as a time: any rank may call it alone.
  virtual void ask_to_stop_training();

  // Writes a savepoint of the state that the next step begins with, in the background, where writes_savepoints() is
  // true. If several calls name one path, the last one counts.
  //
  // Callback::on_savepoint() and the journal of the run report the outcome. If the storage fails (disk
  // full, input or output error, damage found on reading back), training continues with the existing
  // savepoints and an error is logged. Only a failure of the last savepoint ends fit() with its Error.
  //
  // While two savepoints are under way, training waits or this one is skipped, as `options` say.
  // Neither changes the state or a later step. A wait ends with Error{deadline_exceeded} after ten
  // minutes, or sooner if the other replicas would lose patience.
  virtual void save(const std::string& path, const SaveOptions& options) = 0;
};

// The calls of one fit(), in order, with those of validation before on_epoch_end():
//
//   on_fit_begin  (on_epoch_begin  (on_step_begin  on_step_end)*  on_epoch_end)*  on_fit_end
//
// The calls of a validation and of evaluate(), and those of predict() of a data set:
//
//   on_test_begin     (on_test_batch_begin     on_test_batch_end)*     on_test_end
//   on_predict_begin  (on_predict_batch_begin  on_predict_batch_end)*  on_predict_end
//
// These only look. What is to follow from a validation, such as the end of fit(), on_epoch_end() asks for.
//
// If a failure interrupts a validation, evaluate() or predict(), its batches and these calls begin again with the first
// ones. Before a validation is repeated, restore() gives back what state() had returned at its beginning. The states of
// callbacks that evaluate() or predict() was given are not kept: begin in on_test_begin() or on_predict_begin() what
// later calls count. A later start calls nothing for an evaluate() or predict() that had finished, also where predict()
// has to compute its outputs again.
class Callback {
 public:
  virtual ~Callback() = default;

  // Names the state of this callback in savepoints. Two callbacks of one fit() must have different names.
  virtual std::string name() const = 0;
  // Names that this callback needs in the logs of an epoch. fit() throws Error{invalid_argument} before
  // its first step if it will not log one of them.
  virtual std::vector<std::string> monitors() const { return {}; }
  // Those of monitors() that it compares by TrainingContext::best_of(). fit() throws Error{invalid_argument} before its
  // first step for one of which nobody can say whether lower or higher values are better.
  virtual std::vector<std::string> compares() const { return {}; }
  // Whether this fit() validates the moving averages of the weights, and gives them to the model at its end. fit()
  // throws Error{invalid_argument} if the optimizer keeps none (holdfast/optim/weight_average.h).
  virtual bool reads_averages() const { return false; }
  // Whether this callback calls TrainingContext::keep_weights(). Memory for the copy is found when fit()
  // begins. One callback of a fit() may do so.
  virtual bool keeps_weights() const { return false; }
  // The members that a savepoint keeps for this callback. Called on every rank, to read them and to set them.
  virtual void describe_state(CallbackFields&) {}
  // The same for a callback whose state is not a few members: what a savepoint keeps, and the call that gives it back,
  // both on every rank. By default they go through describe_state().
  virtual CallbackState state() const;
  // Gives back what state() returned when the savepoint was written. Throws Error{incompatible} if describe_state()
  // names a member that the savepoint does not have, or of another kind.
  virtual void restore(const CallbackState& state);

  // The first call of a fit(), before its first step.
  virtual void on_fit_begin(TrainingContext&) {}
  // Called before the first step of an epoch.
  virtual void on_epoch_begin(TrainingContext&) {}
  // Called before a step, which uses the learning rate that is set here. A state between two steps includes
  // this call for the second of them: a run that goes on from there begins with the step itself.
  virtual void on_step_begin(TrainingContext&) {}
  // `logs` holds the means over the steps of this epoch so far.
  virtual void on_step_end(TrainingContext&, const Logs&) {}
  // `logs` holds the means of the epoch, validation included if is_validated().
  virtual void on_epoch_end(TrainingContext&, const Logs&) {}
  // The last call of a fit(). `logs` holds the means of its last epoch.
  virtual void on_fit_end(TrainingContext&, const Logs&) {}

  // The first call of a validation or of evaluate(). TrainingContext::weights() are the trained ones, also where
  // averages are evaluated.
  virtual void on_test_begin(const TrainingContext&) {}
  // Called before batch number `batch` of the data, from 0.
  virtual void on_test_batch_begin(const TrainingContext&, std::int64_t /*batch*/) {}
  // `logs` holds the means over the batches so far.
  virtual void on_test_batch_end(const TrainingContext&, std::int64_t /*batch*/, const Logs& /*logs*/) {}
  // `logs` holds what evaluate() returns; also in a validation its names are without "val_".
  virtual void on_test_end(const TrainingContext&, const Logs& /*logs*/) {}

  // The first call of predict().
  virtual void on_predict_begin(const TrainingContext&) {}
  // Called before batch number `batch` of the data, from 0.
  virtual void on_predict_batch_begin(const TrainingContext&, std::int64_t /*batch*/) {}
  // Called after the Trainer::PredictionSink, if there is one, has been given the outputs of this batch.
  virtual void on_predict_batch_end(const TrainingContext&, std::int64_t /*batch*/) {}
  // The last call of predict().
  virtual void on_predict_end(const TrainingContext&) {}

  // Called if this fit() had already ended at `step` after `epoch` epochs, and the program now asks for
  // more epochs. It follows restore() and gets the logs of the last on_epoch_end(). Undo here what
  // on_fit_end() did and what a fit() with more epochs from the start would not have done.
  virtual void on_fit_extended(std::int64_t /*step*/, std::int64_t /*epoch*/, const Logs& /*logs*/) {}

  // Called for each savepoint that a callback asked for, and for the last one that fit() makes by itself if no callback
  // did. It runs on the primary rank alone, on the thread of fit(), so it needs no locks. It comes after the other
  // calls of the next step that ends, before fit() returns, and before a failed write or a stop ends it. Its moment
  // depends on the disk, so what it learns must not enter state() or anything that a later step depends on.
  virtual void on_savepoint(const SavepointEvent&) {}
};

// Holds any callback. It converts from a callback object, which it copies, or from a shared pointer,
// with which the application keeps access to the callback.
class CallbackHandle {
 public:
  // A copy of the callback.
  template <std::derived_from<Callback> C>
  CallbackHandle(C callback)
      : callback_(std::make_shared<C>(std::move(callback))) {}  // NOLINT(google-explicit-constructor)
  // The callback that the application keeps.
  template <std::derived_from<Callback> C>
  CallbackHandle(std::shared_ptr<C> callback)
      : callback_(std::move(callback)) {}  // NOLINT(google-explicit-constructor)

  Callback& operator*() const { return *callback_; }        // the one it was made of
  Callback* operator->() const { return callback_.get(); }  // the one it was made of

 private:
  std::shared_ptr<Callback> callback_;
};

}  // namespace holdfast
