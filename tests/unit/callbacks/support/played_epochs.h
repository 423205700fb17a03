#pragma once

// A fit() that the test plays, for callbacks that keep a record of its epochs.

#include <utility>
#include <vector>

#include "holdfast/train/callback.h"
#include "support/played_context.h"

namespace holdfast {

inline const std::vector<Logs> kThreePlayedEpochs = {
    {{"loss", 1}, {"val_loss", 2}}, {{"loss", 0.5}, {"val_loss", 1.5}}, {{"loss", 0.25}, {"val_loss", 1.25}}};

struct PlayedEpochs {
  PlayedContext context;

  void begin(Callback& callback) { callback.on_fit_begin(context); }
  void end_step(Callback& callback) { callback.on_step_end(context, {{"loss", 7}}); }
  void end_epoch(Callback& callback, const Logs& logs) {
    callback.on_epoch_end(context, logs);
    context.past.push_back(logs);
  }
  void end(Callback& callback) { callback.on_fit_end(context, {}); }
  // Like a state that was saved after these epochs.
  void go_back_to(std::vector<Logs> epochs) { context.past = std::move(epochs); }
};

}  // namespace holdfast
