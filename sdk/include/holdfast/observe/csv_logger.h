#pragma once

// Writes the logs of fit() into a CSV file, one line per epoch, with the columns of Keras: "epoch",
// counted from 0, then the logs by name. NA stands for a value that an epoch does not have. Numbers
// read back as the same doubles.
//
//   trainer.fit(data, {.epochs = 5, .callbacks = {CSVLogger{}}});
//
// The primary rank brings the file to the epochs of the training state, at the end of each epoch and
// with the first step after a start or a recovery. So no epoch has two lines and none is missing, and
// lines of a state that was lost are cut off. The file is on stable storage when the calls of the epoch
// are over. A line that was torn by a kill is repaired at the next start.

#include <string>
#include <vector>

#include "holdfast/observe/epoch_record.h"
#include "holdfast/train/callback.h"

namespace holdfast {

struct CSVLoggerOptions {
  // Default: log.csv in the run directory. Each fit() begins its file anew, unless it appends.
  std::string path{};
  char separator = ',';  // between two fields
  // Has the epochs of the earlier fit() calls of this Trainer first, one call after another: "epoch" begins at 0 again
  // with each call, as in Keras. What another program wrote is not kept. The lines are a function of the training state
  // here, too, so a failure doubles none.
  bool append = false;
};

class CSVLogger final : public EpochRecord {
 public:
  // `options` is copied. Throws Error{invalid_argument} for a separator that is a quote, an end of line,
  // a letter, a NUL or part of a number.
  explicit CSVLogger(CSVLoggerOptions options = {});

  std::string name() const override { return "csv_logger/" + options_.path; }

 private:
  void write(const TrainingContext& context, const std::vector<Logs>& epochs) override;

  CSVLoggerOptions options_;
};

}  // namespace holdfast
