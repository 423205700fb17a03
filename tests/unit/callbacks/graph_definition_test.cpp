#include "callbacks/graph_definition.h"

#include <gtest/gtest.h>

#include "callbacks/protobuf_fields.h"
#include "holdfast/holdfast.h"

namespace holdfast {
namespace {

std::string node_of(const std::string& name, const std::string& kind, const std::vector<std::string>& inputs) {
  std::string node = protobuf::text_field(1, name) + protobuf::text_field(2, kind);
  for (const std::string& input : inputs) node += protobuf::text_field(3, input);
  return protobuf::text_field(1, node);
}

}  // namespace

TEST(GraphDefinition, IsAChainOfTheLayersOfASequential) {
  const Sequential model{Input{4}, Dense{3, {.name = "first"}}, Dense{2, {.name = "second"}}};

  EXPECT_EQ(graph_definition(model.graph()), node_of("input", "Input", {}) + node_of("first", "Dense", {"input"}) +
                                                 node_of("second", "Dense", {"first"}));
}

TEST(GraphDefinition, HasANodeForEachCallOfALayer) {
  const Value a = input({4}, {.name = "a"});
  const Dense shared{4, {.name = "shared"}};
  const Value once = shared(a);
  const Model model(std::vector<Value>{a}, std::vector<Value>{shared(once), once});

  EXPECT_EQ(graph_definition(model.graph()), node_of("a", "Input", {}) + node_of("shared", "Dense", {"a"}) +
                                                 node_of("shared_call_2", "Dense", {"shared"}));
}

TEST(GraphDefinition, IsEmptyForAnApplicationsOwnModel) {
  EXPECT_EQ(graph_definition(R"({"format": "mine"})"), "");
  EXPECT_EQ(graph_definition("[]"), "");
}

}  // namespace holdfast
