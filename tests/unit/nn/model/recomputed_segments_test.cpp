#include "nn/model/recomputed_segments.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "holdfast/holdfast.h"
#include "nn/model/description.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

// The names of the operations that are computed again, in order.
std::vector<std::string> recomputed(const Model& model) {
  std::vector<std::string> names;
  for (const GraphOperation& operation : model.description()->training.operations) {
    if (operation.repeats != kNoOperation) names.push_back(operation.operation->name());
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Recompute, ComputesAgainWhatTheBackwardPassOfThePartNeeds) {
  const Value x = input({4});
  const Value y = recompute([&] { return tanh(Dense{4}(Dropout{0.5F}(Dense{4}(x)))); });

  // The output of tanh is needed by the layer after it, and is kept.
  EXPECT_EQ(recomputed(Model(x, Dense{2}(y))), (Names{"dense", "dropout"}));
}

TEST(Recompute, StandsBeforeTheFirstOperationThatNeedsIt) {
  const Value x = input({4});
  const Value y = recompute([&] { return Dense{4}(square(Dense{4}(x))); });
  const Model model(x, Dense{2}(y));
  const Graph& graph = model.description()->training;

  std::size_t first = graph.first_backward;
  while (graph.operations[first].repeats == kNoOperation) ++first;

  EXPECT_EQ(graph.operations[first - 1].segment, 0U);  // of the last layer
  EXPECT_EQ(graph.operations[first].segment, 1U);
}

TEST(Recompute, LeavesPartsWithoutParametersBeforeThem) {
  const Value x = input({4});
  const Value y = recompute([&] { return square(exponential(x)); });

  EXPECT_EQ(recomputed(Model(x, Dense{2}(y))), Names());
}

TEST(Recompute, TakesALayerOrAFunctionOrNothing) {
  const Value x = input({4});
  const Dense hidden{4};
  const Value layer = Dense{1}(recompute(Dense{4, {.activation = Activation::gelu}})(hidden(x)));
  const Value function = Dense{1}(recompute([&] { return gelu(Dense{4}(hidden(x))); }));
  const Value nothing = Dense{1}(recompute(false, [&] { return gelu(Dense{4}(hidden(x))); }));

  EXPECT_EQ(recomputed(Model(x, layer)), Names{"dense"});
  EXPECT_EQ(recomputed(Model(x, function)), (Names{"dense", "dense"}));
  EXPECT_EQ(recomputed(Model(x, nothing)), Names());
}

TEST(Recompute, WithinAPartBelongsToThatSegment) {
  const Value x = input({4});
  const Value y = recompute([&] { return Dense{4}(recompute([&] { return square(Dense{4}(x)); })); });
  const Model model(x, Dense{4}(y));

  for (const ModelCall& call : model.description()->calls) EXPECT_LE(call.segment, 1U);
}

TEST(Recompute, EndsWithAnExceptionOfTheFunction) {
  EXPECT_NE(refusal([] { recompute([]() -> Value { throw Error(ErrorCode::invalid_argument, "no"); }); }), "");

  const Value x = input({4});
  const Model model(x, Dense{4}(x));
  EXPECT_EQ(model.description()->calls[0].segment, 0U);
}

TEST(Recompute, StaysWithANestedModel) {
  const Value inner = input({4});
  const Model block(inner, recompute([&] { return Dense{4}(square(Dense{4}(inner))); }));
  const Value x = input({4});
  const Value twice = block.call(block.call({x}, "a"), "a")[0];
  const Model model(x, Dense{4}(twice));

  std::vector<std::size_t> segments;
  for (const ModelCall& call : model.description()->calls) segments.push_back(call.segment);
  EXPECT_EQ(segments, (std::vector<std::size_t>{1, 1, 1, 2, 2, 2, 0}));
}

TEST(Recompute, IsAFieldOfTheCallsInFiles) {
  const Value x = input({4});
  const Model model(x, Dense{2}(recompute([&] { return square(Dense{4}(x)); })));
  const nlohmann::json graph = nlohmann::json::parse(model.graph());

  EXPECT_EQ(graph["format"], "holdfast.model");
  EXPECT_EQ(graph["calls"][0]["segment"], 1);
  EXPECT_EQ(graph["calls"][1]["segment"], 1);
  EXPECT_FALSE(graph["calls"][2].contains("segment"));
  EXPECT_EQ(Model::from_graph(graph.dump()).graph(), model.graph());
}

TEST(Recompute, IsNotWrittenForAChainWithoutSegments) {
  EXPECT_EQ((Sequential{Input{4}, Dense{2}}.graph().find("segment")), std::string::npos);
}

TEST(Recompute, RefusesFilesWithAWrongNumberOfAPart) {
  const Value x = input({4});
  nlohmann::json graph = nlohmann::json::parse(Model(x, recompute([&] { return square(Dense{4}(x)); })).graph());
  for (const nlohmann::json& segment : {nlohmann::json(0), nlohmann::json(-1), nlohmann::json(1025),
                                        nlohmann::json("a"), nlohmann::json(nullptr), nlohmann::json(1.5)}) {
    graph["calls"][0]["segment"] = segment;
    EXPECT_NE(refusal([&] { Model::from_graph(graph.dump()); }), "") << segment;
  }
}

TEST(Recompute, TakesPartsThatInterleave) {
  const Value x = input({4});
  const Value y = Dense{4}(square(Dense{4}(square(Dense{4}(x)))));
  nlohmann::json graph = nlohmann::json::parse(Model({x}, {y, y}).graph());
  for (std::size_t call = 0; call < graph["calls"].size(); ++call) graph["calls"][call]["segment"] = 1 + call % 2;
  const Model model = Model::from_graph(graph.dump());

  EXPECT_EQ(model.graph(), Model::from_graph(model.graph()).graph());
}

}  // namespace
}  // namespace holdfast
