#include <algorithm>
#include <array>

#include "holdfast/nn/sequential.h"

namespace holdfast {

namespace {

using Row = std::array<std::string, 3>;

// "41,157,101"
std::string with_separators(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, ",");
  return text;
}

Row row_of(const SequentialLayer& layer) {
  std::size_t weights = 0;
  for (const auto& parameter : layer.layer->parameters(layer.input_shape)) {
    weights += static_cast<std::size_t>(parameter.shape.element_count());
  }
  for (const auto& buffer : layer.layer->buffers(layer.input_shape)) {
    weights += static_cast<std::size_t>(buffer.shape.element_count());
  }
  return {layer.name + " (" + std::string(layer.layer->kind()) + ")", layer.output_shape.to_string(),
          with_separators(weights)};
}

std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, 3> widths{};
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  constexpr std::size_t kGap = 3;
  const std::string rule(widths[0] + widths[1] + widths[2] + 2 * kGap, '-');
  std::string text;
  for (const Row& row : rows) {
    text += row[0] + std::string(widths[0] - row[0].size() + kGap, ' ');
    text += row[1] + std::string(widths[1] - row[1].size() + kGap, ' ');
    text += std::string(widths[2] - row[2].size(), ' ') + row[2] + "\n";
    if (&row == &rows.front()) text += rule + "\n";
  }
  return text + rule + "\n";
}

}  // namespace

std::string Sequential::summary() const {
  std::vector<Row> rows = {{"Layer (type)", "Output shape", "Param #"}};
  for (const SequentialLayer& layer : layers()) rows.push_back(row_of(layer));
  const std::size_t trainable = parameters().element_count();
  const std::size_t kept = buffers().element_count();
  return table(rows) + "Total params: " + with_separators(trainable + kept) + "\n" +
         "Trainable params: " + with_separators(trainable) + "\n" + "Non-trainable params: " + with_separators(kept) +
         "\n";
}

}  // namespace holdfast
