#pragma once

// Writes what fit() logs into a CSV file, a line an epoch, with Keras's columns: "epoch", counted from 0, and the logs
// by name; NA where an epoch has none. Numbers read back as the same doubles.
//
// The file is brought to what the state of training knows of its epochs, by the primary rank, at the end of each epoch
// and with the first step behind a start or a recovery: no epoch has two lines, none is missing, and what a lost state
// had further is cut off. It is on stable storage when the epoch's calls are over. What a kill leaves of a line is
// mended by the next start.

#include <string>
#include <vector>

#include "holdfast/observe/epoch_record.h"
#include "holdfast/train/callback.h"

namespace holdfast {

struct CSVLoggerOptions {
  std::string
      path{};  // default: log.csv in the run directory. Two fit() calls need two files: each begins its own anew
  char separator = ',';
};

class CSVLogger final : public EpochRecord {
 public:
  // Throws Error{invalid_argument} for a separator that is a quote, a line's end, or part of a number.
  explicit CSVLogger(CSVLoggerOptions options = {});

  std::string name() const override { return "csv_logger/" + options_.path; }

 private:
  void write(const TrainingContext& context, const std::vector<Logs>& epochs) override;

  CSVLoggerOptions options_;
};

}  // namespace holdfast
