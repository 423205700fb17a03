// A shape that cannot be derived is missing here, and callers that need it say which layer they need it for.

#include "keras_layers/model_graph_shapes.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace holdfast::format {

bool keeps_integers(const ModelGraphLayer& layer) {
  constexpr std::array<std::string_view, 6> kOperations = {"reshape", "permute",     "slice",
                                                           "pad",     "concatenate", "broadcast"};
  const std::string& kind = layer.kind;
  if (kind == "Operation") {
    return std::find(kOperations.begin(), kOperations.end(), text_member(layer.config, "operation")) !=
           kOperations.end();
  }
  return kind == "Flatten" || kind == "Reshape" || kind == "Permute" || kind == "Concatenate" ||
         kind.starts_with("Cropping");
}

std::vector<bool> reversed_calls(const ModelGraph& graph) {
  std::vector<bool> are_integers, are_reversed;
  for (const ModelGraphCall& call : graph.calls) {
    const auto is_integer = [&](const ModelGraphSource& source) {
      if (source.call != ModelGraphSource::kModelInput) return bool(are_integers[source.call]);
      const std::string& dtype = graph.inputs[source.index].dtype;
      return dtype != "f32" && dtype != "bf16";
    };
    const ModelGraphLayer& layer = graph.layers[call.layer];
    const bool takes_integers = !call.inputs.empty() && is_integer(call.inputs.front());
    are_integers.push_back(takes_integers && keeps_integers(layer));
    are_reversed.push_back(layer.kind == "ReversibleEmbedding" && !takes_integers);
  }
  return are_reversed;
}

std::vector<MaybeShape> input_shapes(const ModelGraph& graph, const ModelGraphCall& call,
                                     std::span<const OutputShapes> shapes) {
  std::vector<MaybeShape> inputs;
  for (const ModelGraphSource& source : call.inputs) {
    if (source.call == ModelGraphSource::kModelInput) {
      inputs.emplace_back(graph.inputs[source.index].shape);
    } else {
      // A file may name an output that the layer does not have, which has no shape.
      const OutputShapes& outputs = shapes[source.call];
      inputs.push_back(source.index < outputs.size() ? outputs[source.index] : std::nullopt);
    }
  }
  return inputs;
}

std::vector<OutputShapes> shapes_of_calls(const ModelGraph& graph) {
  std::vector<OutputShapes> shapes;
  const std::vector<bool> are_reversed = reversed_calls(graph);
  for (const ModelGraphCall& call : graph.calls) {
    const std::vector<MaybeShape> inputs = input_shapes(graph, call, shapes);
    shapes.push_back(shapes_after(graph.layers[call.layer], inputs, are_reversed[shapes.size()]));
  }
  return shapes;
}

}  // namespace holdfast::format
