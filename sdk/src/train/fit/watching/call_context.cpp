#include "train/fit/watching/call_context.h"

namespace holdfast {

// Copies, since a callback may keep the arrays while training goes on.
std::vector<WeightArray> CallContext::weights() const {
  std::vector<WeightArray> arrays;
  for (const StateSpan& span : weights_of(training_.trainable)) {
    WeightArray& array = arrays.emplace_back(
        WeightArray{.name = span.name, .shape = span.shape, .values = std::vector<float>(span.values.size())});
    training_.trainable.memory().copy_to_host(span.values, array.values);
  }
  return arrays;
}

std::vector<std::vector<Logs>> CallContext::earlier_histories() const {
  std::vector<std::vector<Logs>> histories;
  for (std::size_t call = 0; call < call_; ++call) {
    const CallRecord& earlier = training_.state.calls.at(call);
    if (earlier.kind == "fit") histories.push_back(earlier.history);
  }
  return histories;
}

}  // namespace holdfast
