#pragma once

// The state of fit()'s callbacks on its way into TrainState and back. Called on every rank, so that each holds the same
// state, whichever of them saves it.

#include "train/step/training.h"

namespace holdfast {

// What state() of the running fit()'s callbacks gives. Does nothing without a running fit(), and while they are held.
void collect_callback_states(Training& training);

// While it lives, the state of the run holds what state() gave when it was made, and a savepoint holds that, too. For
// calls that come again as a whole if they are cut off.
class HeldCallbackStates {
 public:
  explicit HeldCallbackStates(Training& training) : training_(training) {
    collect_callback_states(training_);
    training_.holds_callback_states = true;
  }
  ~HeldCallbackStates() { training_.holds_callback_states = false; }
  HeldCallbackStates(const HeldCallbackStates&) = delete;
  HeldCallbackStates& operator=(const HeldCallbackStates&) = delete;

 private:
  Training& training_;
};

// Whether the state holds one of `callback` in this call of fit().
bool has_callback_state(const Training& training, const Callback& callback);

// Calls restore() of each callback that has a state. Throws OtherChoices if the state lacks a value that it asks for.
void restore_callbacks(const Training& training, const FitOptions& options);

}  // namespace holdfast
