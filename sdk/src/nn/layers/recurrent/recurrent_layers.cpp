#include "holdfast/nn/recurrent_layers.h"

#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/layers/recurrent/recurrent_parts.h"

namespace holdfast {

template <class Self>
RecurrentLayer<Self>::RecurrentLayer(std::int64_t units, const RecurrentOptions& options)
    : LayerOf<Self>(options.name), settings_{.kind = Self::kRecurrentKind, .units = units, .options = options} {
  check_settings(Self::kKind, settings_);
}

template <class Self>
std::vector<Value> RecurrentLayer<Self>::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const RecurrentOptions& options = settings_.options;
  RecurrentOutputs found = recurrent_outputs(builder, settings_, recurrent_inputs(settings_, inputs, 1),
                                             {.is_reversed = options.go_backwards});
  // Keras returns the sequence in the order in which it was computed.
  const bool is_turned = options.go_backwards && options.return_sequences;
  std::vector<Value> outputs = {is_turned ? flip(found.output, 0) : found.output};
  if (options.return_state) outputs.insert(outputs.end(), found.states.begin(), found.states.end());
  return outputs;
}

template <class Self>
void RecurrentLayer<Self>::write_config(ConfigWriter& config) const {
  write_settings(config, settings_);
}

template <class Self>
std::shared_ptr<const Layer> RecurrentLayer<Self>::from_config(const std::string& name, ConfigReader& config) {
  RecurrentSettings settings = read_settings(Self::kRecurrentKind, config);
  settings.options.name = name;
  return std::make_shared<const Self>(settings.units, settings.options);
}

// Only these three classes exist, so the template needs no header.
template class RecurrentLayer<SimpleRNN>;
template class RecurrentLayer<LSTM>;
template class RecurrentLayer<GRU>;

}  // namespace holdfast
