// Each call has a box, and not each layer: a layer that is called twice would make cycles. Identifiers are numbers of
// our own. Names, which may come from a stranger's file, stand in labels alone. The text is fit for Graphviz, whatever
// the names are: nothing of a name can end a label or begin a statement.

#include <fmt/format.h>

#include "holdfast/base/shown_text.h"
#include "nn/model/description.h"

namespace holdfast {

namespace {

// Text for a label in quotation marks. Graphviz obeys backslashes there, and reads "&lt;" as "<".
std::string label_text(std::string_view text) {
  std::string label;
  // shown_text() escapes control characters with backslashes, which are then doubled. So Graphviz shows them and obeys
  // none.
  for (const char character : shown_text(text)) {
    if (character == '"' || character == '\\') label += '\\';
    label += character == '&' ? "&amp;" : std::string(1, character);
  }
  return label;
}

class Drawing {
 public:
  Drawing(const ModelDescription& model, const DrawingOptions& options) : model_(model), options_(options) {}
  std::string text();

 private:
  void add_box(const std::string& id, const std::string& name, std::string_view kind, const char* colour);
  void add_edge(const CallInput& from, const std::string& to);
  std::string name_of(std::size_t call) const;

  const ModelDescription& model_;
  const DrawingOptions& options_;
  std::string text_;
};

void Drawing::add_box(const std::string& id, const std::string& name, std::string_view kind, const char* colour) {
  text_ += fmt::format("  {} [label=\"{}\\n{}\", fillcolor=\"{}\"];\n", id, name, label_text(kind), colour);
}

void Drawing::add_edge(const CallInput& from, const std::string& to) {
  // Shapes stand at the edges, because a call may have several outputs.
  const bool is_input = from.call == CallInput::kModelInput;
  const ValueSpec& spec = is_input ? model_.inputs[from.index].spec : model_.calls[from.call].outputs[from.index];
  const std::string label = options_.shows_shapes ? fmt::format(" [label=\"{}\"]", spec.shape.to_string()) : "";
  text_ += fmt::format("  {}{} -> {}{};\n", is_input ? "input" : "call", is_input ? from.index : from.call, to, label);
}

// "dense", and "dense (call 2)" for a layer with several calls.
std::string Drawing::name_of(std::size_t call) const {
  // A model has 1024 calls at most, so they may be counted again for each box.
  const std::size_t layer = model_.calls[call].layer;
  std::size_t calls = 0, number = 0;
  for (std::size_t other = 0; other < model_.calls.size(); ++other) {
    if (model_.calls[other].layer != layer) continue;
    ++calls;
    if (other <= call) ++number;
  }
  const std::string name = label_text(model_.layers[layer].name);
  return calls == 1 ? name : fmt::format("{} (call {})", name, number);
}

std::string Drawing::text() {
  text_ =
      "digraph model {\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n"
      "  edge [fontname=\"Helvetica\", fontsize=10];\n";
  for (std::size_t input = 0; input < model_.inputs.size(); ++input) {
    add_box(fmt::format("input{}", input), label_text(model_.inputs[input].name), "Input", "#dcebfa");
  }
  for (std::size_t call = 0; call < model_.calls.size(); ++call) {
    add_box(fmt::format("call{}", call), name_of(call), model_.layers[model_.calls[call].layer].layer->kind(),
            "#f4f4f4");
    for (const CallInput& input : model_.calls[call].inputs) add_edge(input, fmt::format("call{}", call));
  }
  for (std::size_t output = 0; output < model_.output_sources.size(); ++output) {
    // An output has a box of its own, because its call may feed other calls too, or make several outputs.
    const std::string id = fmt::format("output{}", output);
    add_box(id, label_text(model_.outputs[output].name), "Output", "#dcf5e1");
    add_edge(model_.output_sources[output], id);
  }
  return text_ + "}\n";
}

}  // namespace

std::string Model::drawing(const DrawingOptions& options) const {
  return Drawing(*description_, options).text();
}

}  // namespace holdfast
