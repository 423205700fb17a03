#include <gtest/gtest.h>

#include "holdfast/nn/batch_normalization.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/sequential.h"

namespace holdfast {
namespace {

TEST(SequentialSummary, ListsLayersShapesAndParameters) {
  const Sequential model{Input{28, 28, 1}, Conv2D{6, 5}, BatchNormalization{{.name = "norm"}}, Flatten{}, Dense{1000}};

  EXPECT_EQ(model.summary(),
            "Layer (type)                Output shape     Param #\n"
            "----------------------------------------------------\n"
            "conv2d (Conv2D)             [24, 24, 6]          156\n"
            "norm (BatchNormalization)   [24, 24, 6]           24\n"
            "flatten (Flatten)           [3456]                 0\n"
            "dense (Dense)               [1000]         3,457,000\n"
            "----------------------------------------------------\n"
            "Total params: 3,457,180\n"
            "Trainable params: 3,457,168\n"
            "Non-trainable params: 12\n");
}

TEST(SequentialSummary, OfNoLayersIsATableWithoutRows) {
  EXPECT_EQ((Sequential{Input{3}}.summary()),
            "Layer (type)   Output shape   Param #\n"
            "-------------------------------------\n"
            "-------------------------------------\n"
            "Total params: 0\n"
            "Trainable params: 0\n"
            "Non-trainable params: 0\n");
}

}  // namespace
}  // namespace holdfast
