// The graph may come from a file that anybody wrote, so its form is checked before it is used.

#include "pytorch/pytorch_graph.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "keras_files/keras_json.h"

namespace holdfast::format {
namespace {

[[noreturn]] void refuse_graph(const std::string& problem) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the savepoint's metadata has no valid graph, so its arrays cannot be mapped to PyTorch: {}",
                          problem));
}

}  // namespace

Graph parse_graph(const std::string& metadata) {
  Json parsed;
  try {
    // The parser of convert, which refuses what is nested too deeply for a stack.
    parsed = parse_keras_json(metadata, "it");
  } catch (const Error& error) {
    // What that sentence advises is for files of Keras.
    const std::string sentence = error.what();
    refuse_graph(
        fmt::format("{}; give a savepoint of a Sequential or a Model", sentence.substr(0, sentence.find(';'))));
  }
  if (!parsed.is_object()) refuse_graph("it is not a JSON object; give a savepoint of a Sequential or a Model");
  Graph graph;
  try {
    graph = read_model_graph(parsed);
  } catch (const Error& error) {
    // That sentence begins with Keras, and its end says what is wrong.
    const std::string sentence = error.what();
    refuse_graph(sentence.substr(sentence.find(": ") + 2));
  }
  for (const GraphLayer& layer : graph.layers) {
    if (layer.kind.empty() || layer.name.empty()) refuse_graph("a layer has no kind or no name; use another savepoint");
  }
  return graph;
}

}  // namespace holdfast::format
