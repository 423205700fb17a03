// The table looks like that of Keras, which readers know. The layers of a chain follow one another in the table too, so
// only other models have a column of connections.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "nn/model/description.h"

namespace holdfast {

namespace {

using Row = std::vector<std::string>;

// "41,157,101"
std::string with_separators(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, ",");
  return text;
}

std::size_t elements(const ArenaLayout& layout, std::size_t first, std::size_t count) {
  // Padding between entries does not count as weights.
  std::size_t elements = 0;
  for (std::size_t entry = first; entry < first + count; ++entry) elements += layout.entries()[entry].element_count();
  return elements;
}

// The layers and inputs that the calls of a layer take: "dense, input".
std::string connections(const ModelDescription& model, std::size_t layer) {
  std::string text;
  for (const ModelCall& call : model.calls) {
    // A layer with several calls lists the inputs of all of them.
    if (call.layer != layer) continue;
    for (const CallInput& input : call.inputs) {
      const bool is_input = input.call == CallInput::kModelInput;
      text += (text.empty() ? "" : ", ") +
              (is_input ? model.inputs[input.index].name : model.layers[model.calls[input.call].layer].name);
    }
  }
  return text;
}

// "[28, 28]", and "[28, 28] u8": most values are of f32, which goes without saying.
std::string shape_and_type(const ValueSpec& spec) {
  return spec.dtype == DType::f32 ? spec.shape.to_string()
                                  : fmt::format("{} {}", spec.shape.to_string(), name(spec.dtype));
}

// What the first call of a layer gives.
const ValueSpec& output_of_layer(const ModelDescription& model, std::size_t layer) {
  return std::ranges::find(model.calls, layer, &ModelCall::layer)->outputs.front();
}

Row row_of(const ModelDescription& model, std::size_t index) {
  // Buffers count too, as in Keras: they are loaded and saved like parameters.
  const ModelLayer& layer = model.layers[index];
  const std::size_t weights = elements(model.parameters, layer.first_parameter, layer.parameter_count) +
                              elements(model.buffers, layer.first_buffer, layer.buffer_count);
  // A layer without weights has nothing that could be trained, so it says nothing.
  const bool is_frozen = layer.is_frozen && weights > 0;
  return {fmt::format("{} ({}{})", layer.name, layer.layer->kind(), is_frozen ? ", frozen" : ""),
          shape_and_type(output_of_layer(model, index)), with_separators(weights)};
}

// The third column is flush right; further ones are flush left.
std::string table(const std::vector<Row>& rows) {
  // Each column is as wide as its longest cell, so that a long name moves a column and cuts nothing.
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  constexpr std::size_t kGap = 3;
  std::size_t width = kGap * (widths.size() - 1);
  for (const std::size_t column : widths) width += column;
  const std::string rule(width, '-');
  std::string text;
  for (const Row& row : rows) {
    std::string line = row[0] + std::string(widths[0] - row[0].size() + kGap, ' ');
    line += row[1] + std::string(widths[1] - row[1].size() + kGap, ' ');
    // Numbers end at one place, so that their sizes can be compared by eye.
    line += std::string(widths[2] - row[2].size(), ' ') + row[2];
    for (std::size_t column = 3; column < row.size(); ++column) line += std::string(kGap, ' ') + row[column];
    text += line + "\n";
    if (&row == &rows.front()) text += rule + "\n";
  }
  return text + rule + "\n";
}

// A single output without a name needs no line. Any other has a name by which its results are logged and its targets
// are found.
std::string outputs_line(const ModelDescription& model) {
  if (model.outputs.size() == 1 && model.output_names.empty()) return {};
  std::vector<std::string> texts;
  for (const ModelArray& output : model.outputs) {
    texts.push_back(fmt::format("{} {}", output.name, shape_and_type(output.spec)));
  }
  return fmt::format("Outputs: {}\n", fmt::join(texts, ", "));
}

std::string in_mebibytes(std::size_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

std::string sum_of(const PassMemory& memory) {
  std::string text = fmt::format("{}: weights {}", in_mebibytes(memory.total()), in_mebibytes(memory.weights));
  if (memory.gradients > 0) text += fmt::format(", gradients {}", in_mebibytes(memory.gradients));
  return text + fmt::format(", samples {}, arrays {}, workspace {}\n", in_mebibytes(memory.samples),
                            in_mebibytes(memory.arrays), in_mebibytes(memory.workspace));
}

}  // namespace

std::string Model::summary() const {
  const bool shows_connections = !is_chain();
  std::vector<Row> rows = {{"Layer (type)", "Output shape", "Param #"}};
  for (const ModelArray& input : inputs()) {
    // The input of a chain has a row if its type must be known.
    if (!shows_connections && input.spec.dtype == DType::f32) continue;
    rows.push_back({fmt::format("{} (Input)", input.name), shape_and_type(input.spec), "0"});
  }
  for (std::size_t layer = 0; layer < layers().size(); ++layer) rows.push_back(row_of(*description_, layer));
  if (shows_connections) {
    rows.front().push_back("Connected to");
    for (std::size_t row = 1; row < rows.size(); ++row) {
      // Row 0 is the head, and the inputs follow it.
      const bool is_input = row <= inputs().size();
      rows[row].push_back(is_input ? "" : connections(*description_, row - 1 - inputs().size()));
    }
  }
  // The weights of frozen layers are among the buffers.
  const std::size_t trainable = parameters().element_count();
  const std::size_t kept = buffers().element_count();
  return fmt::format("{}{}Total params: {}\nTrainable params: {}\nNon-trainable params: {}\n", table(rows),
                     outputs_line(*description_), with_separators(trainable + kept), with_separators(trainable),
                     with_separators(kept));
}

std::string Model::summary(std::int64_t samples) const {
  return fmt::format("{}Memory for {} at a time, without the optimizer's slots\n  training step: {}  prediction: {}",
                     summary(), samples == 1 ? "1 sample" : fmt::format("{} samples", samples),
                     sum_of(training_memory(samples)), sum_of(prediction_memory(samples)));
}

}  // namespace holdfast
