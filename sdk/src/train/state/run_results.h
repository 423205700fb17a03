#pragma once

// RUN_DIRECTORY/results.json (see holdfast/train/run_results.h), made from the training state.

#include <cstddef>
#include <map>
#include <string>

#include "holdfast/base/digest.h"
#include "holdfast/data/dataset.h"
#include "train/context/replica_context.h"
#include "train/state/train_state.h"

namespace holdfast {

// The file's text. `earlier` is that of the Trainers before this one in the run; empty for the first. `skipped` has
// what skip_bad() left out, by the number of the call; calls without such samples have no entry.
std::string results_text(const TrainState& state, const Digest& weights, const std::string& earlier = {},
                         const std::map<std::size_t, SkippedSamples>& skipped = {});

// Leaves the results of all Trainers so far in `context`.
void note_results(Replica::Context& context, const TrainState& state, const Digest& weights);

// Writes the results that the Trainer has left in `context`, durably, unless the file has them already. Every rank may
// call it, since all have the same results: so the file is written whichever rank lives longest. A failing storage
// costs the file, with a warning.
void keep_results(const Replica::Context& context);

// For a Trainer that trains alone, for which no file is written. From then on run_results() of this process returns
// what the Trainer has left in `context`. Results of an earlier run in the directory do not count any more.
void remember_results(const Replica::Context& context);

}  // namespace holdfast
