#include "holdfast/train/callback.h"

#include "holdfast/base/error.h"
#include "nn/losses/metric_direction.h"

namespace holdfast {

void TrainingContext::set_learning_rate(float) {
  throw Error(ErrorCode::unsupported, "this training takes no learning rate from callbacks");
}

// Here the name alone is known. A Trainer asks its metrics first.
std::optional<Best> TrainingContext::best_of(const std::string& log) const {
  return direction_of_name(log);
}

void TrainingContext::keep_weights() {
  throw Error(ErrorCode::unsupported, "this training keeps no weights for callbacks");
}

void TrainingContext::restore_kept_weights() {
  throw Error(ErrorCode::unsupported, "this training keeps no weights for callbacks");
}

// One process decides for itself alone.
void TrainingContext::ask_to_stop_training() {
  stop_training();
}

// describe_state() gives references to members, which are only read here.
CallbackState Callback::state() const {
  CallbackState state;
  CallbackFields fields(name(), state);
  const_cast<Callback*>(this)->describe_state(fields);
  return state;
}

void Callback::restore(const CallbackState& state) {
  CallbackFields fields(name(), state);
  describe_state(fields);
}

}  // namespace holdfast
