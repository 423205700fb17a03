#pragma once

// The base class of callbacks that keep a record of the epochs of fit() in files; applications may use
// it too. The record is a function of the epochs that the training state knows, so it needs no state of
// its own. The primary rank writes it whenever it may differ from these epochs: at the end of an epoch,
// when fit() begins and ends, and with the first step of a process, of a new primary rank or of a state
// that was rolled back.
//
// Nothing is written if the context forbids it (TrainingContext::writes_files). If the record cannot be
// written when fit() begins, fit() ends with that Error before it trains. A later Error is logged and
// training goes on; the end of the next epoch makes up for it.
//
//   class LossFile final : public EpochRecord {
//    public:
//     std::string name() const override { return "loss_file"; }
//
//    private:
//     void write(const TrainingContext& context, const std::vector<Logs>& epochs) override {
//       std::string text;
//       for (const Logs& epoch : epochs) text += std::to_string(epoch.at("loss")) + "\n";
//       write_whole_file(posix_file_system(), path_in_run(context, "", "loss.txt", "LossFile"),
//                        std::as_bytes(std::span(text)));  // holdfast/base/whole_file.h
//     }
//   };

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"

namespace holdfast {

// Derived classes implement name() and write().
class EpochRecord : public Callback {
 public:
  // A derived class that overrides one of these calls it, too.
  void on_fit_begin(TrainingContext& context) override;
  void on_step_end(TrainingContext& context, const Logs& logs) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;
  void on_fit_end(TrainingContext& context, const Logs& logs) final;

 protected:
  // Whether this rank keeps the record.
  static bool writes(const TrainingContext& context) { return context.is_primary() && context.writes_files(); }
  // As write(); a failure is logged.
  void try_to_write(const TrainingContext& context, const std::vector<Logs>& epochs);

 private:
  // Makes the record hold exactly these epochs, and returns when it is on stable storage. With the same
  // epochs again it changes nothing. May throw Error.
  virtual void write(const TrainingContext& context, const std::vector<Logs>& epochs) = 0;
  // Called after the last write() of a fit(), on the rank that writes.
  virtual void finish(const TrainingContext&) {}

  std::optional<std::size_t> written_epochs_;  // written or tried; empty if another rank may have written since
};

// Returns `path`, or `name` in the run directory if `path` is empty. Throws Error{invalid_argument},
// which names `callback`, if there is no run directory.
std::string path_in_run(const TrainingContext& context, const std::string& path, const std::string& name,
                        const std::string& callback);

}  // namespace holdfast
