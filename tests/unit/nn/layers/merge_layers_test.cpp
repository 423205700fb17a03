#include "holdfast/nn/merge_layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/model.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using reference::Values;

// A model that merges two dense layers of its input, compared with a function of their outputs.
void expect_merge(const std::function<Value(const Value&, const Value&)>& merge, double (*expected)(double, double)) {
  const Value x = input({3});
  const Model model(x, merge(Dense{4}(x), Dense{4}(x)));
  const auto reference = [&](const Values& features, const std::vector<Values>& p) {
    Values a = reference::dense(features, 3, p[0], p[1], 4);
    const Values b = reference::dense(features, 3, p[2], p[3], 4);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = expected(a[i], b[i]);
    return a;
  };
  reference::expect_training_matches(model, 3, reference, {.paths = 3 * 3 * 4, .roundings = 12, .largest_path = 4});
  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

TEST(MergeLayers, MatchTheReference) {
  expect_merge([](const Value& a, const Value& b) { return Add{}(a, b); }, [](double a, double b) { return a + b; });
  expect_merge([](const Value& a, const Value& b) { return Subtract{}(a, b); },
               [](double a, double b) { return a - b; });
  expect_merge([](const Value& a, const Value& b) { return Multiply{}(a, b); },
               [](double a, double b) { return a * b; });
  expect_merge([](const Value& a, const Value& b) { return Average{}(a, b); },
               [](double a, double b) { return (a + b) / 2; });
  expect_merge([](const Value& a, const Value& b) { return Maximum{}(a, b); },
               [](double a, double b) { return std::max(a, b); });
  expect_merge([](const Value& a, const Value& b) { return Minimum{}(a, b); },
               [](double a, double b) { return std::min(a, b); });
}

TEST(MergeLayers, ConcatenateJoinsAlongAnAxis) {
  const Value a = input({2, 3});
  const Value b = input({2, 5});

  EXPECT_EQ(Concatenate{}(a, b).shape(), (Shape{2, 8}));
  EXPECT_EQ((Concatenate{{.axis = 0}}(a, a, a).shape()), (Shape{6, 3}));
  EXPECT_THROW((Concatenate{{.axis = 0}}(a, b)), Error);
}

TEST(MergeLayers, TakeThreeInputs) {
  const Value x = input({2});

  EXPECT_EQ(Average{}(x, x, x).shape(), (Shape{2}));
  EXPECT_THROW(Subtract{}(x, x, x), Error);
}

}  // namespace
}  // namespace holdfast
