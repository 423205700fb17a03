// The table looks like that of Keras, which readers know. The layers of a chain follow one another in the table too, so
// only other models have a column of connections.

#include <fmt/format.h>

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

Row row_of(const ModelDescription& model, std::size_t index) {
  // Buffers count too, as in Keras: they are loaded and saved like parameters.
  const ModelLayer& layer = model.layers[index];
  const std::size_t weights = elements(model.parameters, layer.first_parameter, layer.parameter_count) +
                              elements(model.buffers, layer.first_buffer, layer.buffer_count);
  return {layer.name + " (" + std::string(layer.layer->kind()) + ")", layer.output_shape.to_string(),
          with_separators(weights)};
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
    if (shows_connections) rows.push_back({input.name + " (Input)", input.spec.shape.to_string(), "0"});
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
  return table(rows) + "Total params: " + with_separators(trainable + kept) + "\n" +
         "Trainable params: " + with_separators(trainable) + "\n" + "Non-trainable params: " + with_separators(kept) +
         "\n";
}

std::string Model::summary(std::int64_t samples) const {
  return summary() +
         fmt::format("Memory for {} at a time, without the optimizer's slots\n",
                     samples == 1 ? "1 sample" : fmt::format("{} samples", samples)) +
         "  training step: " + sum_of(training_memory(samples)) + "  prediction: " + sum_of(prediction_memory(samples));
}

}  // namespace holdfast
