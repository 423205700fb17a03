// The functions of values; layers test the numbers of all options.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/functions.h"
#include "holdfast/nn/model.h"
#include "unit/nn/support/convolution_case.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Pooling, IsAFunctionOfValues) {
  const FunctionLayer largest_of_two([](const Value& x) { return max_pooling(x, {.size = {2}}); });
  const FunctionLayer mean_of_two([](const Value& x) { return average_pooling(x, {.size = {2}, .strides = {3}}); });

  // x = -5, 2, -2, 5, 1, to which the layer adds -3, 2, 0, -2, 3.
  EXPECT_THAT(outputs_of_pattern({5, 1}, largest_of_two), ElementsAre(4, 3));
  EXPECT_THAT(outputs_of_pattern({5, 1}, mean_of_two), ElementsAre(-2, 3.5F));
}

TEST(Pooling, StandsInFilesBetweenLayers) {
  const Value x = input({6, 6, 6, 2});
  const Value image = input({8, 8, 3});
  const Model model({x, image}, {max_pooling(x, {.size = {2, 3, 2}, .padding = Padding::same}),
                                 average_pooling(image, {.size = {2, 2}, .strides = {1, 2}})});

  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

TEST(Pooling, RefusesWindowsThatDoNotFitTheInput) {
  EXPECT_THAT(refusal([] {
                max_pooling(input({5, 4}), {.size = {2, 2}});
              }),
              HasSubstr("it needs an input [height, width, channels]"));
  EXPECT_THAT(refusal([] {
                max_pooling(input({5, 4}), {.size = {2}, .padding = Padding::causal});
              }),
              HasSubstr("padding valid or same"));
  EXPECT_THAT(refusal([] {
                average_pooling(input({5, 4}), {.size = {}});
              }),
              HasSubstr("pooling needs windows with one to three extents"));
}

}  // namespace
}  // namespace holdfast
