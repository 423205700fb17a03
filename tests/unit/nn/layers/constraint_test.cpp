// Constraints against Keras in float64 (scripts/tests/constraint_cases.py), and the layers that have them.

#include "holdfast/nn/constraint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "holdfast/holdfast.h"
#include "support/folders.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

TEST(Constraint, GivesTheWeightsOfKeras) {
  std::ifstream file(source_folder() + "/tests/unit/nn/reference/constraints.json");
  const Json cases = Json::parse(file);
  ASSERT_EQ(cases.size(), 8U);
  for (const Json& one : cases) {
    const Constraint constraint = Constraint::from_name(one["constraint"].get<std::string>());
    SCOPED_TRACE(constraint.name());
    const Shape shape(one["shape"].get<std::vector<std::int64_t>>());
    auto weights = one["weights"].get<std::vector<float>>();

    constraint.check(shape);
    constraint.apply(shape, weights);

    // A weight below 2 is rounded once.
    for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], one["expected"][i].get<double>(), 1.2e-7);
  }
}

TEST(Constraint, ReadsTheNamesThatItWrites) {
  for (const Constraint& one :
       {Constraint::max_norm(), Constraint::max_norm(0.1F, {0, 1, -1}), Constraint::non_neg(), Constraint::unit_norm(),
        Constraint::unit_norm({1}), Constraint::min_max_norm(0.25F, 1e-3F + 0.25F, 0.5F, {2})}) {
    EXPECT_EQ(Constraint::from_name(one.name()), one) << one.name();
  }
  EXPECT_EQ(Constraint::max_norm(2).name(), "max_norm(2)");
  EXPECT_EQ(Constraint::unit_norm({0, 1}).name(), "unit_norm([0,1])");
  EXPECT_EQ(Constraint().name(), "");
}

TEST(Constraint, RefusesTextsAndNumbersThatAreNotAConstraint) {
  EXPECT_EQ(code_thrown_by([] { Constraint::max_norm(-1); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_thrown_by([] { Constraint::unit_norm({0, 0}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_thrown_by([] { Constraint::unit_norm({}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_thrown_by([] { Constraint::min_max_norm(2, 1); }), ErrorCode::invalid_argument);
  for (const char* name : {"", "max_norm", "max_norm()", "max_norm(2", "max_norm(nan)", "max_norm(1,2)", "norm(2)",
                           "non_neg(1)", "non_neg([0])", "unit_norm([])", "unit_norm([0.5])", "unit_norm([900])",
                           "min_max_norm(0,1,2)", "max_norm(\"2\")"}) {
    EXPECT_EQ(code_thrown_by([&] { Constraint::from_name(name); }), ErrorCode::invalid_argument) << name;
  }
}

TEST(Constraint, IsRefusedForWeightsWithoutItsAxis) {
  const auto describe = [](const Constraint& constraint) {
    return Model(Sequential{Input{3}, Dense{2, {.bias_constraint = constraint}}});
  };

  EXPECT_EQ(code_thrown_by([&] { describe(Constraint::unit_norm({1})); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_thrown_by([&] { describe(Constraint::unit_norm({0, -1})); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_thrown_by([&] { describe(Constraint::unit_norm({-2})); }), ErrorCode::invalid_argument);
}

// Every layer that has regularizers and constraints, with all of them.
Model limited_model() {
  const Regularizer l1 = Regularizer::l1(0.5F);
  const Regularizer l2 = Regularizer::l2(0.25F);
  const Constraint norm = Constraint::max_norm(3, {0, 1});
  const Constraint plus = Constraint::non_neg();
  const Value ids = input({6}, {.dtype = DType::i32});
  Value x = Embedding{9, 4, {.embeddings_regularizer = l1, .embeddings_constraint = norm}}(ids);
  const auto kernel = [&](auto options) {
    options.kernel_regularizer = l1;
    options.bias_regularizer = l2;
    options.kernel_constraint = norm;
    options.bias_constraint = plus;
    return options;
  };
  const auto gamma_and_beta = [&](auto options) {
    options.beta_regularizer = l1;
    options.gamma_regularizer = l2;
    options.beta_constraint = plus;
    options.gamma_constraint = Constraint::unit_norm();
    return options;
  };
  x = Conv1D{4, 3, kernel(Conv1DOptions{})}(x);
  x = Conv1DTranspose{4, 3, kernel(Conv1DTransposeOptions{})}(x);
  x = DepthwiseConv1D{
      2,
      {.depthwise_regularizer = l1, .bias_regularizer = l2, .depthwise_constraint = norm, .bias_constraint = plus}}(x);
  x = SeparableConv1D{4,
                      2,
                      {.depthwise_regularizer = l1,
                       .pointwise_regularizer = l2,
                       .bias_regularizer = l1,
                       .depthwise_constraint = norm,
                       .pointwise_constraint = norm,
                       .bias_constraint = plus}}(x);
  x = BatchNormalization{gamma_and_beta(BatchNormalizationOptions{})}(x);
  x = LayerNormalization{gamma_and_beta(LayerNormalizationOptions{})}(x);
  x = GroupNormalization{2, gamma_and_beta(GroupNormalizationOptions{})}(x);
  return {ids, Dense{1, kernel(DenseOptions{})}(x)};
}

TEST(Constraint, IsAnOptionOfAllLayersThatHaveRegularizers) {
  const Model model = limited_model();

  const std::string graph = model.graph();

  EXPECT_EQ(Model::from_graph(graph).graph(), graph);
  const auto count = [&](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = graph.find(text); at != std::string::npos; at = graph.find(text, at + 1)) ++found;
    return found;
  };
  // Each of the arrays of all layers has both.
  EXPECT_EQ(count("_regularizer\""), model.parameters().entries().size());
  EXPECT_EQ(count("_constraint\""), model.parameters().entries().size());
}

TEST(Constraint, IsInTheTextOfAModelOnlyWhereItIsSet) {
  const Model plain = Sequential{Input{6, 2}, Conv1DTranspose{2, 3}, BatchNormalization{}, SeparableConv1D{2, 3}};

  EXPECT_EQ(plain.graph().find("constraint"), std::string::npos);
  EXPECT_EQ(plain.graph().find("regularizer"), std::string::npos);
}

}  // namespace
}  // namespace holdfast
