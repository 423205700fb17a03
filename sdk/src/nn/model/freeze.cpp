// A model with other frozen layers is lowered anew from the same layers and calls. The weights of a frozen layer become
// buffers, so nothing downstream needs to know of frozen layers: gradients, slots and sums have the layout of the
// parameters. docs/decisions/buffers.md

#include <algorithm>

#include "holdfast/base/error.h"
#include "nn/model/find_layers.h"
#include "nn/model/named_weights.h"

namespace holdfast {

ModelDescription ModelDescription::without_graphs() const {
  ModelDescription copy;
  copy.inputs = inputs;
  for (const ModelLayer& layer : layers) {
    copy.layers.push_back({.name = layer.name,
                           .layer = layer.layer,
                           .input_shape = {},
                           .output_shape = {},
                           .is_frozen = layer.is_frozen});
  }
  // The same identities: the copy can be called next to the original, and shares its weights there.
  copy.identities = identities;
  for (const ModelCall& call : calls) {
    copy.calls.push_back({.layer = call.layer, .inputs = call.inputs, .segment = call.segment});
  }
  copy.output_sources = output_sources;
  copy.output_names = output_names;
  return copy;
}

std::vector<std::string> Model::frozen_layers() const {
  std::vector<std::string> names;
  for (const ModelLayer& layer : layers()) {
    if (layer.is_frozen) names.push_back(layer.name);
  }
  return names;
}

Model Model::with_frozen(const std::vector<bool>& are_frozen) const {
  ModelDescription copy = description_->without_graphs();
  for (std::size_t layer = 0; layer < are_frozen.size(); ++layer) copy.layers[layer].is_frozen = are_frozen[layer];
  Model model(complete(std::move(copy)));
  copy_weights(*this, model);
  return model;
}

static std::vector<bool> changed_flags(const ModelDescription& model, std::string_view pattern, bool is_frozen) {
  std::vector<bool> flags = matching_layers(model, pattern);
  for (std::size_t layer = 0; layer < flags.size(); ++layer) {
    flags[layer] = flags[layer] ? is_frozen : model.layers[layer].is_frozen;
  }
  return flags;
}

Model Model::frozen(std::string_view pattern) const {
  return with_frozen(changed_flags(*description_, pattern, true));
}

Model Model::unfrozen(std::string_view pattern) const {
  return with_frozen(changed_flags(*description_, pattern, false));
}

Model Model::with_frozen_layers(const std::vector<std::string>& names) const {
  std::vector<bool> flags;
  for (const ModelLayer& layer : layers()) flags.push_back(std::ranges::find(names, layer.name) != names.end());
  return with_frozen(flags);
}

}  // namespace holdfast
