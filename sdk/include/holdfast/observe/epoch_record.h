#pragma once

// What callbacks have in common that keep a record of fit()'s epochs in files: an application's own, too. The record is
// a function of the epochs that the state knows, so nothing of it needs a place in the state. It is written by the
// primary rank where it may differ from these epochs: at an epoch's end, with the first step of a process, of a new
// primary rank or of a state that was taken back, and when fit() begins and ends.
//
// None is written where the context says so (TrainingContext::writes_files). A record that cannot be written when fit()
// begins ends it with the Error, before anything is trained. Later an Error is logged, training goes on, and the next
// epoch's end makes up for it.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"

namespace holdfast {

class EpochRecord : public Callback {
 public:
  void on_fit_begin(TrainingContext& context) final;
  void on_step_end(TrainingContext& context, const Logs& logs) final;
  void on_epoch_end(TrainingContext& context, const Logs& logs) final;
  void on_fit_end(TrainingContext& context, const Logs& logs) final;

 private:
  // Makes the record one of these epochs and no others, durably. Called again with the same epochs it changes nothing.
  virtual void write(const TrainingContext& context, const std::vector<Logs>& epochs) = 0;

  void try_to_write(const TrainingContext& context, const std::vector<Logs>& epochs);

  std::optional<std::size_t> written_epochs_;  // or tried to; none where another rank may have written since
};

// `path`, or where it is empty `name` in the run directory. Throws Error{invalid_argument} where there is none, which
// speaks of `callback`.
std::string path_in_run(const TrainingContext& context, const std::string& path, const std::string& name,
                        const std::string& callback);

}  // namespace holdfast
