#include "holdfast/nn/padding_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/sequential.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

// What the model makes of the elements 1, 2, 3, ... of one sample.
Floats padded_or_cropped(Sequential model) {
  model.set_weights({}, {});
  Tensor x(model.input_shape().with_batch(1));
  float next = 1;
  for (float& value : x.values()) value = next++;
  const Tensor y = model.predict(x);
  return {y.values().begin(), y.values().end()};
}

TEST(PaddingLayers, PutZerosAroundSequencesAndVolumes) {
  EXPECT_EQ(padded_or_cropped(Sequential{Input{2, 1}, ZeroPadding1D{{1, 2}}}), (Floats{0, 1, 2, 0, 0}));
  EXPECT_EQ(padded_or_cropped(Sequential{Input{1, 2}, ZeroPadding1D{}}), (Floats{0, 0, 1, 2, 0, 0}));
  EXPECT_EQ(padded_or_cropped(Sequential{Input{1, 1, 2, 1}, ZeroPadding3D{{{1, 0}, {0, 1}, {0, 1}}}}),
            (Floats{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0}));
  EXPECT_EQ((Sequential{Input{1, 2, 3, 4}, ZeroPadding3D{{1, 2, 3}}}.output_shape()), (Shape{3, 6, 9, 4}));
}

TEST(PaddingLayers, TakeMarginsOfSequencesAndVolumesAway) {
  EXPECT_EQ(padded_or_cropped(Sequential{Input{4, 1}, Cropping1D{{2, 1}}}), (Floats{3}));
  EXPECT_EQ(padded_or_cropped(Sequential{Input{3, 2}, Cropping1D{}}), (Floats{3, 4}));
  EXPECT_EQ(padded_or_cropped(Sequential{Input{2, 2, 2, 1}, Cropping3D{{{1, 0}, {0, 1}, {1, 0}}}}), (Floats{6}));
  EXPECT_EQ((Sequential{Input{3, 5, 7, 4}, Cropping3D{{1, 2, 3}}}.output_shape()), (Shape{1, 1, 1, 4}));
}

TEST(PaddingLayers, AreWrittenToTheGraphAndReadFromIt) {
  const Sequential model{Input{4, 3, 2, 1}, ZeroPadding3D{{{1, 0}, {2, 3}, {4, 5}}}, Cropping3D{{{0, 1}, 2, {3, 1}}}};
  const Sequential sequence{Input{4, 3}, ZeroPadding1D{{1, 2}}, Cropping1D{{3, 0}}};

  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
  EXPECT_EQ(Sequential::from_graph(sequence.graph()).graph(), sequence.graph());
}

TEST(PaddingLayers, RefuseOptionsAndInputsThatTheyCannotTake) {
  EXPECT_THAT(refusal([] { ZeroPadding1D{-1}; }),
              HasSubstr("ZeroPadding1D needs margins from 0 to 2147483647, not -1"));
  EXPECT_THAT(refusal([] { ZeroPadding3D{{0, {0, -2}, 0}}; }), HasSubstr("ZeroPadding3D needs margins"));
  EXPECT_THAT(refusal([] { Cropping1D{{0, -1}}; }), HasSubstr("Cropping1D needs margins"));
  EXPECT_THAT(refusal([] { Cropping3D{-1}; }), HasSubstr("Cropping3D needs margins"));
  EXPECT_THAT(refusal([] { Sequential{Input{4}, ZeroPadding1D{}}; }), HasSubstr("it needs an input [steps, channels]"));
  EXPECT_THAT(refusal([] {
                Sequential{Input{4, 4, 1}, ZeroPadding3D{}};
              }),
              HasSubstr("it needs an input [depth, height, width, channels]"));
  EXPECT_THAT(refusal([] {
                Sequential{Input{4, 1}, Cropping1D{{3, 1}}};
              }),
              HasSubstr("its margins 3 and 1 leave nothing of the 4 elements of axis 0"));
  EXPECT_THAT(refusal([] { Sequential{Input{4, 4, 2, 1}, Cropping3D{}}; }), HasSubstr("of the 2 elements of axis 2"));
}

TEST(PaddingLayers, RefuseFilesWithTooFewMargins) {
  std::string graph = Sequential{Input{4, 1}, ZeroPadding1D{7}}.graph();
  graph.replace(graph.find("7,7"), 3, "7");

  EXPECT_THAT(refusal([&] { Sequential::from_graph(graph); }), HasSubstr("\"padding\" needs 2 margins, not 1"));
}

}  // namespace
}  // namespace holdfast
