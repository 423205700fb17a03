#include "holdfast/nn/shape_layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/sequential.h"

namespace holdfast {
namespace {

// What the model makes of the elements 1, 2, 3, ... of one sample.
std::vector<float> applied(Sequential model) {
  model.set_weights({}, {});
  Tensor x(model.input_shape().with_batch(1));
  float next = 1;
  for (float& value : x.values()) value = next++;
  const Tensor y = model.predict(x);
  return {y.values().begin(), y.values().end()};
}

using Floats = std::vector<float>;

TEST(ShapeLayers, MoveElementsAsKerasDoes) {
  EXPECT_EQ(applied(Sequential{Input{4}, Reshape{{2, -1}}}), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(applied(Sequential{Input{2, 3}, Permute{{2, 1}}}), (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(applied(Sequential{Input{2}, RepeatVector{3}}), (Floats{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(applied(Sequential{Input{1, 2, 1}, ZeroPadding2D{{0, 1, 2, 0}}}), (Floats{0, 0, 1, 2, 0, 0, 0, 0}));
  EXPECT_EQ(applied(Sequential{Input{3, 3, 1}, Cropping2D{{1, 0, 0, 1}}}), (Floats{4, 5, 7, 8}));
  EXPECT_EQ(applied(Sequential{Input{1, 2, 1}, UpSampling2D{2}}), (Floats{1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_EQ(applied(Sequential{Input{2}, Rescaling{0.5F, 1}}), (Floats{1.5F, 2}));
}

TEST(ShapeLayers, AreWrittenToTheGraphAndReadFromIt) {
  const Sequential model{Input{12},        Reshape{{2, 2, 3}},       Permute{{3, 1, 2}}, UpSampling2D{{2, 1}},
                         ZeroPadding2D{1}, Cropping2D{{1, 1, 1, 0}}, Rescaling{2},       Reshape{{-1}},
                         RepeatVector{2}};

  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
  EXPECT_EQ(model.output_shape().rank(), 2U);
}

TEST(ShapeLayers, RefuseOptionsAndInputsThatTheyCannotTake) {
  EXPECT_THROW(ZeroPadding2D{-1}, Error);
  EXPECT_THROW(Cropping2D{-1}, Error);
  EXPECT_THROW(UpSampling2D{0}, Error);
  EXPECT_THROW(RepeatVector{0}, Error);
  EXPECT_THROW((Permute{{0, 1}}), Error);
  EXPECT_THROW(Rescaling{INFINITY}, Error);
  EXPECT_THROW((Sequential{Input{4}, ZeroPadding2D{1}}), Error);
  EXPECT_THROW((Sequential{Input{2, 2, 1}, Cropping2D{1}}), Error);
  EXPECT_THROW((Sequential{Input{2, 2}, RepeatVector{2}}), Error);
  EXPECT_THROW((Sequential{Input{5}, Reshape{{2, -1}}}), Error);
}

}  // namespace
}  // namespace holdfast
