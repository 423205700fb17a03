#pragma once

// The results of a run that has finished, for the program that started it and for any other. The first process, which
// does not train, and later supervise() calls read here what earlier runs computed.
//
//   const RunResults run = run_results("run/fold0");
//   const double accuracy = run.calls.back().results.at("accuracy");  // of evaluate(), the last call of that run

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"

namespace holdfast {

// One call of fit() or evaluate(), in the order of the training function.
struct CallResults {
  std::string kind;           // "fit" or "evaluate"
  Logs results;               // for fit() those of the last epoch
  std::vector<Logs> history;  // for fit() one entry per epoch
};

struct RunResults {
  std::int64_t steps = 0;      // updates applied
  std::string weights_digest;  // Trainer::weights_digest() after the last call, 32 hexadecimal digits
  std::vector<CallResults> calls;
};

// Reads RUN_DIRECTORY/results.json. A run writes that file when its training function has returned, and again when it
// has trained longer. In a process that has trained the run alone (SuperviseOptions::alone) it returns the results of
// that training. Throws Error{not_found} where no run of that directory has finished, Error{invalid_file} for a
// damaged file.
RunResults run_results(const std::string& run_directory);

}  // namespace holdfast
