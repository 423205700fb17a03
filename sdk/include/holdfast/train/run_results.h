#pragma once

// The results of a finished run, for the program that started it and for any other. The first process
// of a supervised program does not train; it reads here what the replicas computed, and what earlier
// supervise() calls did.
//
//   const RunResults run = run_results("run/fold0");
//   const double accuracy = run.calls.back().results.at("accuracy");  // of evaluate(), the last call of that run

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/data/dataset.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// One call of fit() or evaluate(), in the order in which the training function made them.
struct CallResults {
  std::string kind;           // "fit", "evaluate", "predict", "load_weights", "take_averages" or "compile"
  Logs results;               // of fit(): of its last epoch
  std::vector<Logs> history;  // of fit(): one entry per epoch; else empty
  // What Dataset::skip_bad() and CsvOptions::skip_ragged left out of the data of fit(), with that for validation, or of
  // evaluate().
  SkippedSamples skipped_samples{};
};

// The content of results.json.
struct RunResults {
  std::int64_t steps = 0;          // updates applied
  std::string weights_digest;      // Trainer::weights_digest() after the last call, 32 hexadecimal digits
  std::vector<CallResults> calls;  // of fit() and evaluate(), in their order
};

// Reads results.json in the run directory. A run writes it when its training function has returned, and
// again after it has trained longer. Throws Error{not_found} if no run of that directory has finished,
// and Error{invalid_file} if the file is damaged. For a run that this process trained alone
// (SuperviseOptions::alone), returns the results of that training.
RunResults run_results(const std::string& run_directory);

}  // namespace holdfast
