// A run may go on with other frozen layers and another optimizer. The record of that call says so, and everything else
// follows from it: the arrays of the state, and what a savepoint says of itself. docs/decisions/calls.md

#include <algorithm>
#include <nlohmann/json.hpp>

#include "train/state/train_state.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// A call that has not finished changed nothing yet, so the one before it still holds.
const CallRecord* last_compile(const TrainState& state) {
  const auto found = std::find_if(state.calls.rbegin(), state.calls.rend(),
                                  [](const CallRecord& call) { return call.kind == "compile" && call.is_finished; });
  return found == state.calls.rend() ? nullptr : &*found;
}

}  // namespace

// The record itself has no step: steps of the optimizer count from where this call began.
std::string laid_out_training(const CallRecord& compile) {
  Json training = Json::parse(compile.data);
  training["first_step"] = compile.begun_at_step;
  return training.dump();
}

std::string laid_out_training(const TrainState& state) {
  const CallRecord* const compile = last_compile(state);
  return compile == nullptr ? std::string() : laid_out_training(*compile);
}

std::string present_graph(const TrainState& state) {
  const CallRecord* const compile = last_compile(state);
  if (compile == nullptr) return state.graph;
  Json graph = Json::parse(state.graph);
  const Json frozen = Json::parse(compile->data).value("frozen", Json::array());
  for (Json& layer : graph["layers"]) {
    // The text as a model with these layers writes it: the key is there for frozen layers alone.
    layer.erase("trainable");
    if (std::find(frozen.begin(), frozen.end(), layer.value("name", Json())) != frozen.end()) {
      layer["trainable"] = false;
    }
  }
  return graph.dump();
}

std::string present_configuration(const TrainState& state) {
  const CallRecord* const compile = last_compile(state);
  if (compile == nullptr) return state.configuration;
  Json configuration = Json::parse(state.configuration);
  configuration["optimizer"] = Json::parse(compile->data).value("optimizer", Json());
  return configuration.dump();
}

}  // namespace holdfast
