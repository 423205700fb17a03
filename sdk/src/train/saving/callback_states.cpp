// Each rank collects the same states, since callbacks run on all ranks alike. A rank that takes over after a failure
// therefore needs no message about them. docs/decisions/callbacks.md

#include "train/saving/callback_states.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <variant>

#include "train/context/other_choices.h"

namespace holdfast {
namespace {

// Two calls of fit() may have callbacks of one name.
std::string key_of(const Training& training, const Callback& callback) {
  return fmt::format("{}/{}", training.calls_made - 1, callback.name());
}

// The state may lack what a callback asks for, since the program may have been edited.
void restore(Callback& callback, const CallbackState& state) {
  // Both exceptions mean the same: the callback's code has changed since.
  const auto refuse = [&] {
    std::string keys;
    for (const auto& [key, value] : state) keys += (keys.empty() ? "" : ", ") + key;
    throw OtherChoices(
        fmt::format("the callback \"{}\" cannot restore() the state that the run has of it ({}): it asks for a value "
                    "that the state "
                    "does not have, or that is of another type. Use the callback that wrote it, or {}",
                    callback.name(), keys.empty() ? "no values" : keys, kHowToStartAnew));
  };
  try {
    callback.restore(state);
  } catch (const std::out_of_range&) {
    refuse();
  } catch (const std::bad_variant_access&) {
    refuse();
  }
}

}  // namespace

void collect_callback_states(Training& training) {
  if (training.running_fit == nullptr || training.holds_callback_states) return;
  for (const CallbackHandle& callback : training.running_fit->callbacks) {
    training.state.callbacks[key_of(training, *callback)] = callback->state();
  }
}

bool has_callback_state(const Training& training, const Callback& callback) {
  return training.state.callbacks.contains(key_of(training, callback));
}

void restore_callbacks(const Training& training, const FitOptions& options) {
  for (const CallbackHandle& callback : options.callbacks) {
    const auto saved = training.state.callbacks.find(key_of(training, *callback));
    if (saved != training.state.callbacks.end()) restore(*callback, saved->second);
  }
}

}  // namespace holdfast
