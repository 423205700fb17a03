#pragma once

// RUN_DIRECTORY/results.json (holdfast/train/run_results.h), from the state that has it.

#include <string>

#include "holdfast/base/digest.h"
#include "train/context/place.h"
#include "train/state/train_state.h"

namespace holdfast {

// The file's text.
std::string results_text(const TrainState& state, const Digest& weights);

// Writes what the Trainer has left in `place`, durably, unless it stands there already. Every rank may call it, since
// all have the same results; so the file is written whichever rank lives longest. A storage that fails costs the file,
// with a warning.
void keep_results(const Replica::Place& place);

// For a Trainer that trains alone, of which nothing is written: run_results() of this process gives what it has left in
// `place`, and not what an earlier run has left in the directory.
void remember_results(const Replica::Place& place);

}  // namespace holdfast
