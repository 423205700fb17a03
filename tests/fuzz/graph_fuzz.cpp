// Reads the JSON form of a model. A model that was accepted must be written as a text that reads back to the same text.

#include "fuzz_input.h"
#include "holdfast/nn/model.h"

using namespace holdfast;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  std::string graph;
  if (!fuzz::succeeds([&] { graph = Model::from_graph(json).graph(); })) return 0;
  HOLDFAST_ASSERT(Model::from_graph(graph).graph() == graph);
  return 0;
}
