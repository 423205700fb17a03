// TensorBoard's projector reads tables of embeddings from files that a configuration names. They are text, although it
// is larger than the numbers: TensorBoard takes a file for binary only where it happens not to be UTF-8. Files are
// numbered, because names of layers may hold what a path must not. docs/decisions/records.md

#include "callbacks/embedding_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"

namespace holdfast {
namespace {

constexpr std::string_view kModelPrefix = "model/";
constexpr std::string_view kTableSuffix = "/embeddings";

// Empty for an array that is not a table.
std::string layer_of(const WeightArray& array) {
  std::string_view name = array.name;
  // Keras's name for the table of an embedding layer.
  if (array.shape.rank() != 2 || !name.starts_with(kModelPrefix) || !name.ends_with(kTableSuffix)) return {};
  name.remove_prefix(kModelPrefix.size());
  return std::string(name.substr(0, name.size() - std::min(kTableSuffix.size(), name.size())));
}

// The shortest text that is read as the same number.
std::string text_of(const WeightArray& array) {
  const auto columns = static_cast<std::size_t>(array.shape[1]);
  std::string text;
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    const bool ends_row = (i + 1) % columns == 0;
    fmt::format_to(std::back_inserter(text), "{}{}", array.values[i], ends_row ? '\n' : '\t');
  }
  return text;
}

// TensorBoard passes over lines of spaces alone, so that all later rows would have labels of others. It takes a first
// line with a tab for the names of columns.
std::string line_of(const std::string& label) {
  std::string line;
  for (const char character : label) {
    switch (character) {
      case '\n':
        line += "\\n";
        break;
      case '\r':
        line += "\\r";
        break;
      case '\t':
        line += "\\t";
        break;
      default:
        line += character;
    }
  }
  const bool is_blank = line.find_first_not_of(" \v\f") == std::string::npos;
  return is_blank ? '"' + line + '"' : line;
}

// As text_format of protobuf quotes: the configuration is a message in that form.
std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') quoted += '\\';
    quoted += character;
  }
  return quoted + '"';
}

void write_text(FileSystem& files, const std::string& path, const std::string& text) {
  write_whole_file(files, path, std::as_bytes(std::span(text)));
}

}  // namespace

void check_embedding_labels(const std::vector<WeightArray>& weights, const EmbeddingLabels& labels) {
  std::map<std::string, std::size_t> rows;
  for (const WeightArray& array : weights) {
    if (const std::string layer = layer_of(array); !layer.empty())
      rows[layer] = static_cast<std::size_t>(array.shape[0]);
  }
  for (const auto& [layer, of_rows] : labels) {
    const auto found = rows.find(layer);
    if (found == rows.end()) {
      std::vector<std::string> known;
      for (const auto& [name, count] : rows) known.push_back("\"" + name + "\"");
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("TensorBoardOptions::embedding_labels has labels for \"{}\", and the model has {}", layer,
                              known.empty() ? "no layer with a table of embeddings"
                                            : fmt::format("tables of embeddings in {}", fmt::join(known, ", "))));
    }
    if (of_rows.size() == found->second) continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("TensorBoardOptions::embedding_labels has {} labels for the {} rows of \"{}\"; give one for "
                    "each row",
                    of_rows.size(), found->second, layer));
  }
}

void write_embedding_tables(FileSystem& files, const std::string& folder, const std::vector<WeightArray>& weights,
                            const EmbeddingLabels& labels) {
  std::string configuration;
  int number = 0;
  for (const WeightArray& array : weights) {
    const std::string layer = layer_of(array);
    if (layer.empty()) continue;
    // A model without tables leaves no folder.
    if (number == 0) files.create_folders(folder);
    const std::string file = fmt::format("embeddings_{}", number++);
    write_text(files, folder + "/" + file + ".tsv", text_of(array));
    configuration += fmt::format(
        "embeddings {{\n  tensor_name: {}\n  tensor_shape: {}\n  tensor_shape: {}\n  tensor_path: \"{}.tsv\"\n",
        in_quotes(layer + std::string(kTableSuffix)), array.shape[0], array.shape[1], file);
    if (const auto of_rows = labels.find(layer); of_rows != labels.end()) {
      std::string lines;
      for (const std::string& label : of_rows->second) lines += line_of(label) + '\n';
      write_text(files, folder + "/" + file + "_labels.tsv", lines);
      configuration += fmt::format("  metadata_path: \"{}_labels.tsv\"\n", file);
    }
    configuration += "}\n";
  }
  // Last: what it names is there. A TensorBoard that looks before sees no tables.
  if (number > 0) write_text(files, folder + "/projector_config.pbtxt", configuration);
}

}  // namespace holdfast
