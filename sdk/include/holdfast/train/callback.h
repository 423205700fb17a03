#pragma once

// Code of the application (or of Holdfast) that fit() calls as training goes on. Every rank makes the same calls at the
// same steps with the same logs, so that what a callback decides is the same everywhere; effects outside the process
// (files, network) belong on the primary rank alone. What a callback must remember across a failure it hands out in
// state(): it is kept in every savepoint and given back through restore() before the first call after a restart.
// Callbacks may throw; the exception ends the training function. They may block, as an upload does, for as long as
// SuperviseOptions::callback_timeout says (10 minutes); the other replicas wait.
//
// Calls come again after a loss: training goes on from the newest state that there is (a survivor's, a memory snapshot,
// a savepoint), perhaps with another process as the primary rank, and the calls made since that state are made once
// more, with the same steps and logs. State follows by itself, and effects outside do not: write them under their epoch
// or step, so that a call that comes again replaces what the first one left. Who only appends gets rows twice.

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/train/savepoint.h"

namespace holdfast {

// Means by name: "loss", "accuracy", and with validation data "val_loss", ... . Ordered, so that every rank sees one
// order.
using Logs = std::map<std::string, double>;

// A value of every kind comes back with the same bits.
using CallbackValue = std::variant<std::int64_t, double, std::string, std::vector<double>>;
using CallbackState = std::map<std::string, CallbackValue>;

// What a callback may see and ask for. Valid during the call only.
class TrainingContext {
 public:
  virtual ~TrainingContext() = default;

  virtual int rank() const = 0;
  virtual int replicas() const = 0;
  bool is_primary() const { return rank() == 0; }
  virtual std::string run_directory() const = 0;  // empty when training is not supervised
  // False while a program is debugged (SuperviseOptions::alone): then files of the run stay as they are.
  virtual bool writes_files() const { return true; }
  // Further folders for the run's savepoints.
  virtual std::vector<std::string> savepoint_copies() const { return {}; }
  // This replica's share of the host's cores, for work on savepoints; 0: all that the process has.
  virtual int saving_threads() const { return 0; }
  // Through which the run's savepoints are written, read and deleted; it lives as long as the Trainer's Replica.
  virtual FileSystem& file_system() const { return posix_file_system(); }

  virtual std::int64_t step() const = 0;            // updates applied since the start of the run
  virtual std::int64_t epoch() const = 0;           // from 0
  virtual std::int64_t epochs() const = 0;          // asked for
  virtual std::int64_t batch_in_epoch() const = 0;  // batches of this epoch that are done
  virtual std::int64_t batches_per_epoch() const = 0;
  virtual std::int64_t samples_in_epoch() const = 0;  // samples of this epoch that are done

  // What on_epoch_end() was told of each epoch of this fit() that is over: the same on every rank, whatever was lost
  // and redone. What a callback keeps outside the process is brought to it, rather than added to: calls since the
  // newest state come again after a loss.
  virtual const std::vector<Logs>& history() const = 0;

  // fit() returns behind the current epoch's or step's calls.
  virtual void stop_training() = 0;

  // Writes a savepoint of the state that the next step begins with, in the background, on the primary rank alone; of
  // several with one path the last call counts. To be called on every rank alike, like everything that a callback does.
  // What comes of it is told through Callback::on_savepoint(), and by the run's journal. Where the storage fails (disk
  // full, input or output, damage found on reading back) training goes on with the savepoints that are there, which is
  // logged as an error; only the failure of the last one ends fit() with its Error.
  //
  // While two are under way, training waits or the savepoint is skipped, as `options` say; neither changes the state or
  // a later step. A wait ends with Error{deadline_exceeded} after ten minutes, or sooner where other replicas would
  // lose patience.
  virtual void save(const std::string& path, const SaveOptions& options) = 0;
};

class Callback {
 public:
  virtual ~Callback() = default;

  // Names this callback's state in savepoints; two callbacks of one fit() must not share one.
  virtual std::string name() const = 0;
  // Names in the epoch's logs that this callback cannot do without. fit() throws Error{invalid_argument} for those that
  // it will not log, before its first step.
  virtual std::vector<std::string> monitors() const { return {}; }
  virtual CallbackState state() const { return {}; }
  virtual void restore(const CallbackState&) {}

  virtual void on_fit_begin(TrainingContext&) {}
  virtual void on_epoch_begin(TrainingContext&) {}
  virtual void on_step_end(TrainingContext&, const Logs&) {}
  // `logs` holds the epoch's means, validation included.
  virtual void on_epoch_end(TrainingContext&, const Logs&) {}
  virtual void on_fit_end(TrainingContext&, const Logs&) {}

  // fit() had ended by its epochs, which were `epoch`, at `step`, and goes on since the program asks for more. Called
  // after restore(), with what on_epoch_end() was last told. Undo here what on_fit_end() has done and a fit() with
  // these epochs from the start would not have done.
  virtual void on_fit_extended(std::int64_t /*step*/, std::int64_t /*epoch*/, const Logs& /*logs*/) {}

  // Called for every savepoint that a callback asked for, and for the last one that fit() makes by itself where no
  // callback did. It runs on the primary rank alone, on the thread of fit(), so it needs no locks: after the other
  // calls of the next step that ends, before fit() returns, and before a failed write or a stop ends it. Its moment
  // depends on the disk, so what it learns must not enter state(), nor anything that a later step depends on.
  virtual void on_savepoint(const SavepointEvent&) {}
};

// Holds any callback: made implicitly of a callback object, or of a shared pointer where the application keeps access
// to it.
class CallbackHandle {
 public:
  template <std::derived_from<Callback> C>
  CallbackHandle(C callback)
      : callback_(std::make_shared<C>(std::move(callback))) {}  // NOLINT(google-explicit-constructor)
  template <std::derived_from<Callback> C>
  CallbackHandle(std::shared_ptr<C> callback)
      : callback_(std::move(callback)) {}  // NOLINT(google-explicit-constructor)

  Callback& operator*() const { return *callback_; }
  Callback* operator->() const { return callback_.get(); }

 private:
  std::shared_ptr<Callback> callback_;
};

}  // namespace holdfast
