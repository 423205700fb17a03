// Reads the configuration of a Keras model. The graph of a model that was accepted must read back to the same text, and
// may be written for Keras again or be refused.

#include "fuzz_input.h"
#include "keras/keras_functional_reader.h"
#include "keras/keras_functional_writer.h"
#include "keras_layers/keras_activation.h"

using namespace holdfast;
using namespace holdfast::format;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Json graph;
  const auto read = [&] {
    const Json config = parse_keras_json(text, "the configuration");
    graph = model_graph_json(read_keras_functional(config, "the configuration").graph);
  };
  if (!fuzz::succeeds(read)) return 0;
  const ModelGraph model = read_model_graph({{"graph", graph}});
  HOLDFAST_ASSERT(model_graph_json(model) == graph);
  const auto is_option = [](const std::string& activation) { return keras_activation_name(activation).has_value(); };
  fuzz::succeeds([&] { keras_functional_config(with_activation_layers(model, is_option)); });
  return 0;
}
