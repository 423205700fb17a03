// The text of a file is not trusted, and here no model checks it: every number is compared with the lists before it is
// used, and names stand in labels alone.

#include "graph_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "holdfast/base/shown_text.h"

namespace holdfast::cli {
namespace {

using GraphJson = nlohmann::ordered_json;

// A null for what is missing or of another kind, because operator[] of a constant object asserts that the key exists.
const GraphJson& part(const GraphJson& object, const char* key) {
  static const GraphJson kNone;
  return object.is_object() && object.contains(key) ? object[key] : kNone;
}

// As in Model::drawing(): a backslash or a quotation mark ends nothing, and "&" begins no name of a sign.
std::string label_part(const GraphJson& text) {
  std::string label;
  for (const char character : shown_text(text.is_string() ? text.get<std::string>() : "?")) {
    if (character == '"' || character == '\\') label += '\\';
    label += character == '&' ? "&amp;" : std::string(1, character);
  }
  return label;
}

class GraphDrawing {
 public:
  explicit GraphDrawing(const GraphJson& graph)
      : layers_(part(graph, "layers")), inputs_(part(graph, "inputs")), calls_(part(graph, "calls")) {}

  std::string text(const GraphJson& outputs) {
    text_ =
        "digraph model {\n"
        "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n"
        "  edge [fontname=\"Helvetica\", fontsize=10];\n";
    if (calls_.is_array() && inputs_.is_array()) {
      add_calls(outputs);
    } else {
      add_chain();
    }
    return text_ + "}\n";
  }

 private:
  void add_box(const std::string& id, const std::string& name, const std::string& kind, const char* colour) {
    text_ += fmt::format("  {} [label=\"{}\\n{}\", fillcolor=\"{}\"];\n", id, name, kind, colour);
  }

  void add_layer(const std::string& id, const GraphJson& layer) {
    add_box(id, label_part(part(layer, "name")), label_part(part(layer, "kind")), "#f4f4f4");
  }

  void add_arrows(const GraphJson& sources, const std::string& to) {
    for (const GraphJson& source : sources.is_array() ? sources : GraphJson::array()) {
      const bool is_pair =
          source.is_array() && source.size() == 2 && source[0].is_number_integer() && source[1].is_number_integer();
      if (!is_pair) continue;
      // [-1, i] is input i of the model, as in docs/format.md.
      const bool is_input = source[0] == -1;
      const GraphJson& place = is_input ? source[1] : source[0];
      // dot would invent a box for a number that no list has.
      if (place < 0 || place >= (is_input ? inputs_ : calls_).size()) continue;
      text_ += fmt::format("  {}{} -> {};\n", is_input ? "input" : "call", place.get<std::size_t>(), to);
    }
  }

  void add_calls(const GraphJson& outputs) {
    for (std::size_t input = 0; input < inputs_.size(); ++input) {
      add_box(fmt::format("input{}", input), label_part(part(inputs_[input], "name")), "Input", "#dcebfa");
    }
    for (std::size_t call = 0; call < calls_.size(); ++call) {
      const GraphJson& layer = part(calls_[call], "layer");
      // A layer that the list lacks becomes a box with "?", so that the arrows around it still show.
      const bool is_known = layer.is_number_integer() && layer >= 0 && layer < layers_.size();
      const std::string id = fmt::format("call{}", call);
      add_layer(id, is_known ? layers_[layer.get<std::size_t>()] : GraphJson());
      add_arrows(part(calls_[call], "inputs"), id);
    }
    for (std::size_t output = 0; outputs.is_array() && output < outputs.size(); ++output) {
      const std::string id = fmt::format("output{}", output);
      add_box(id, fmt::format("output {}", output), "Output", "#dcf5e1");
      add_arrows(GraphJson::array({outputs[output]}), id);
    }
  }

  // Sequential models list no calls: each layer takes the output of the one before.
  void add_chain() {
    add_box("input0", "input", "Input", "#dcebfa");
    std::string last = "input0";
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      const std::string id = fmt::format("call{}", layer);
      add_layer(id, layers_[layer]);
      text_ += fmt::format("  {} -> {};\n", last, id);
      last = id;
    }
    add_box("output0", "output", "Output", "#dcf5e1");
    text_ += fmt::format("  {} -> output0;\n", last);
  }

  // Parts of the constructor's graph, which must outlive the object.
  const GraphJson& layers_;
  const GraphJson& inputs_;
  const GraphJson& calls_;
  std::string text_;
};

}  // namespace

std::optional<std::string> drawing_of_own_layers(const nlohmann::ordered_json& graph) {
  const GraphJson& layers = part(graph, "layers");
  // Kinds of applications have a dot, and those of Holdfast have none.
  const auto is_own = [](const GraphJson& layer) {
    const GraphJson& kind = part(layer, "kind");
    return kind.is_string() && kind.get<std::string>().find('.') != std::string::npos;
  };
  if (!layers.is_array() || !std::any_of(layers.begin(), layers.end(), is_own)) return std::nullopt;
  return GraphDrawing(graph).text(part(graph, "outputs"));
}

}  // namespace holdfast::cli
