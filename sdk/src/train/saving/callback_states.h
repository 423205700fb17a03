#pragma once

// The state of fit()'s callbacks on its way into TrainState and back. Called on every rank, so that each holds the same
// state, whichever of them saves it.

#include "train/step/training.h"

namespace holdfast {

// What state() of the running fit()'s callbacks gives. Does nothing without a running fit().
void collect_callback_states(Training& training);

// Whether the state holds one of `callback` in this call of fit().
bool has_callback_state(const Training& training, const Callback& callback);

// Calls restore() of each callback that has a state. Throws OtherChoices if the state lacks a value that it asks for.
void restore_callbacks(const Training& training, const FitOptions& options);

}  // namespace holdfast
