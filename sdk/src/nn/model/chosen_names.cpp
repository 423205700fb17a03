#include "nn/model/chosen_names.h"

#include "nn/graph/layer_names.h"
#include "nn/layers/operation_layer.h"
#include "nn/model/description.h"

namespace holdfast {

std::vector<bool> chosen_input_names(const Model& model) {
  std::vector<bool> are_chosen;
  // "input", "input_1", ... are also what the kind "Input" would give.
  for (const ModelArray& input : model.inputs()) are_chosen.push_back(!is_automatic_name(input.name, "Input"));
  return are_chosen;
}

std::vector<bool> chosen_output_names(const Model& model) {
  const ModelDescription& description = *model.description();
  if (!description.output_names.empty()) return std::vector<bool>(description.outputs.size(), true);
  std::vector<bool> are_chosen;
  for (const CallInput& source : description.output_sources) {
    if (source.call == CallInput::kModelInput) {
      are_chosen.push_back(!is_automatic_name(description.inputs[source.index].name, "Input"));
      continue;
    }
    const ModelLayer& layer = description.layers[description.calls[source.call].layer];
    const auto* const operation = dynamic_cast<const OperationLayer*>(layer.layer.get());
    // A layer of a nested model is known by the last part of its path.
    are_chosen.push_back(!is_automatic_name(layer.name.substr(layer.name.rfind('/') + 1),
                                            operation ? operation->label() : std::string(layer.layer->kind())));
  }
  return are_chosen;
}

}  // namespace holdfast
