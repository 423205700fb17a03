#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/nn/support/random_model.h"

namespace holdfast {
namespace {

// The graph with one layer for all functions of this name, as a file may have it.
std::string with_one_layer(const Model& model, const std::string& operation) {
  nlohmann::json graph = nlohmann::json::parse(model.graph());
  std::vector<std::size_t> same;
  for (std::size_t layer = 0; layer < graph["layers"].size(); ++layer) {
    if (graph["layers"][layer]["config"].value("operation", "") == operation) same.push_back(layer);
  }
  EXPECT_EQ(same.size(), 2U);
  for (nlohmann::json& call : graph["calls"]) {
    const auto layer = call["layer"].get<std::size_t>();
    if (layer == same[1]) call["layer"] = same[0];
    if (layer > same[1]) call["layer"] = layer - 1;
  }
  graph["layers"].erase(same[1]);
  return graph.dump();
}

TEST(ActivationOperation, MayBeCalledForValuesOfSeveralShapes) {
  const Value x = input({6});
  const Value first = Dense{6}(x);
  const Value second = Dense{6}(tanh(first));
  const Value y = tanh(slice(second, 0, 0, 2));
  const Model apart({x}, {concatenate({y, slice(second, 0, 2, 6)})});
  const Model model = Model::from_graph(with_one_layer(apart, "tanh"));

  EXPECT_EQ(model.layers().size() + 1, apart.layers().size());
  EXPECT_EQ(random_models::train(model, 3), random_models::train(apart, 3));
}

}  // namespace
}  // namespace holdfast
