#pragma once

// Several Trainers of one run, one after the other. A Trainer ends when the next one makes its first call. Then its
// calls and their results are recorded in the run directory, so that a process which begins later passes them without
// computing, and without the other replicas, which are in the next Trainer by then. docs/decisions/calls.md

#include <cstddef>
#include <optional>

#include "train/step/training.h"

namespace holdfast {

// "DIRECTORY/trainer1.json": the state that the first Trainer ended with, without the state of callbacks.
std::string path_of_ended_trainer(const Replica::Context& context, int trainer);

// Leaves in the context what the next Trainer of the run must know of this one, which goes now.
void leave_to_next_trainer(const Training& training);

// Before the first call of a Trainer: records the one before it, unless it is recorded. Every rank does it before it
// joins the others, so a rank that meets them afterwards finds the record. Throws Error{invalid_argument} if the one
// before has left a call open.
void record_trainer_before(Replica::Context& context);

// The state that this Trainer has ended with, according to the run directory; empty unless the run has gone on to the
// next one. Throws what require_same_choices() throws for another program.
std::optional<TrainState> find_ended_trainer(const Training& training);

// Loads the arrays of the newest savepoint of a Trainer that has ended, or the initial ones if it has none. Returns how
// many calls these arrays are the result of: load_weights() and compile() after them must be repeated. Throws
// Error{not_found} if the savepoint of a finished fit() is missing.
std::size_t load_ended_arrays(Training& training, const TrainState& ended);

}  // namespace holdfast
