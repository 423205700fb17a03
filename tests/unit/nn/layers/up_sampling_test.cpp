#include "holdfast/nn/up_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/sequential.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

// What the model makes of the elements 1, 2, 3, ... of one sample.
Floats up_sampled(Sequential model) {
  model.set_weights({}, {});
  Tensor x(model.input_shape().with_batch(1));
  float next = 1;
  for (float& value : x.values()) value = next++;
  const Tensor y = model.predict(x);
  return {y.values().begin(), y.values().end()};
}

TEST(UpSampling, RepeatsPositionsNextToEachOther) {
  EXPECT_EQ(up_sampled(Sequential{Input{2, 2}, UpSampling1D{}}), (Floats{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(up_sampled(Sequential{Input{2, 1, 1, 1}, UpSampling3D{{2, 1, 2}}}), (Floats{1, 1, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ((Sequential{Input{1, 2, 3, 4}, UpSampling3D{}}.output_shape()), (Shape{2, 4, 6, 4}));
}

TEST(UpSampling, IsWrittenToTheGraphAndReadFromIt) {
  const Sequential volume{Input{4, 3, 2, 1}, UpSampling3D{{1, 2, 3}}};
  const Sequential sequence{Input{4, 3}, UpSampling1D{5}};

  EXPECT_EQ(Sequential::from_graph(volume.graph()).graph(), volume.graph());
  EXPECT_EQ(Sequential::from_graph(sequence.graph()).graph(), sequence.graph());
}

// Each place of the factor is an operation, and a file of one number could exhaust the memory.
TEST(UpSampling, BoundsTheFactorsThatInterpolate) {
  for (const Extent2D size : {Extent2D{4097, 1}, Extent2D{1, 2147483647}}) {
    EXPECT_THAT(refusal([&] { UpSampling2D(size, {.interpolation = Interpolation::bilinear}); }),
                HasSubstr("with Interpolation::bilinear they are at most 4096"));
    EXPECT_EQ(refusal([&] { UpSampling2D{size}; }), "");
  }
  std::string graph =
      Sequential{Input{1, 1, 1}, UpSampling2D{{7, 1}, {.interpolation = Interpolation::bilinear}}}.graph();
  graph.replace(graph.find("[7,1]"), 5, "[2147483647,1]");
  EXPECT_THAT(refusal([&] { Sequential::from_graph(graph); }), HasSubstr("they are at most 4096"));
}

TEST(UpSampling, RefusesOptionsAndInputsThatItCannotTake) {
  EXPECT_THAT(refusal([] { UpSampling1D{0}; }), HasSubstr("UpSampling1D needs a factor from 1 to 2147483647, not 0"));
  EXPECT_THAT(refusal([] { UpSampling3D{{1, -1, 1}}; }), HasSubstr("UpSampling3D needs factors"));
  EXPECT_THAT(refusal([] { Sequential{Input{4}, UpSampling1D{}}; }), HasSubstr("it needs an input [steps, channels]"));
  EXPECT_THAT(refusal([] { Sequential{Input{4, 1}, UpSampling3D{}}; }), HasSubstr("it needs an input [depth"));
}

}  // namespace
}  // namespace holdfast
