#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/batch_normalization.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/embedding.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/merge_layers.h"
#include "holdfast/nn/sequential.h"
#include "holdfast/nn/shape_layers.h"

namespace holdfast {
namespace {

using testing::MatchesRegex;

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

TEST(SequentialSummary, IsATableWithoutRowsIfThereAreNoLayers) {
  EXPECT_EQ((Sequential{Input{3}}.summary()),
            "Layer (type)   Output shape   Param #\n"
            "-------------------------------------\n"
            "-------------------------------------\n"
            "Total params: 0\n"
            "Trainable params: 0\n"
            "Non-trainable params: 0\n");
}

TEST(ModelSummary, ShowsTypesThatAreNotF32AndOutputsAndFrozenLayers) {
  const Value ids = input({3}, {.dtype = DType::u16, .name = "ids"});
  const Value words = Embedding{5, 2, {.name = "words"}}(Flatten{}(ids));
  const Model model = Model({ids}, {{"score", Dense{1}(words)}, {"words", words}}).frozen("words");

  EXPECT_EQ(model.summary(),
            "Layer (type)                Output shape   Param #   Connected to\n"
            "-----------------------------------------------------------------\n"
            "ids (Input)                 [3] u16              0   \n"
            "flatten (Flatten)           [3] i32              0   ids\n"
            "words (Embedding, frozen)   [3, 2]              10   flatten\n"
            "dense (Dense)               [3, 1]               3   words\n"
            "-----------------------------------------------------------------\n"
            "Outputs: score [3, 1], words [3, 2]\n"
            "Total params: 13\n"
            "Trainable params: 3\n"
            "Non-trainable params: 10\n");
}

TEST(SequentialSummary, ShowsAnInputThatIsNotF32) {
  const std::string summary = Sequential{Input{{3}, {.dtype = DType::u8}}, Rescaling{0.5F}, Dense{1}}.summary();

  EXPECT_THAT(summary, testing::HasSubstr("input (Input)           [3] u8               0\n"));
}

TEST(ModelSummary, NamesWhatEachLayerIsConnectedTo) {
  const Value x = input({4}, {.name = "pixels"});
  const Dense shared{4, {.name = "shared"}};
  const Value a = shared(x);
  const Model model(x, Add{{.name = "sum"}}(a, shared(a)));

  EXPECT_EQ(model.summary(),
            "Layer (type)     Output shape   Param #   Connected to\n"
            "--------------------------------------------------------\n"
            "pixels (Input)   [4]                  0   \n"
            "shared (Dense)   [4]                 20   pixels, shared\n"
            "sum (Add)        [4]                  0   shared, shared\n"
            "--------------------------------------------------------\n"
            "Total params: 20\n"
            "Trainable params: 20\n"
            "Non-trainable params: 0\n");
}

TEST(ModelSummary, SaysWhatMemoryStepsNeedAndWhatIsNotCounted) {
  const Sequential model{Input{1024}, Dense{1024}};
  const std::string summary = model.summary(256);

  EXPECT_TRUE(summary.starts_with(model.summary()));
  // The workspace depends on the kernels that the machine has.
  EXPECT_THAT(summary.substr(model.summary().size()),
              MatchesRegex("Memory for 256 samples at a time, without the optimizer's slots\n"
                           "  training step: [0-9.]+ MiB: weights 4.0 MiB, gradients 4.0 MiB, samples 2.0 MiB, "
                           "arrays 1.0 MiB, workspace [0-9.]+ MiB\n"
                           "  prediction: [0-9.]+ MiB: weights 4.0 MiB, samples 1.0 MiB, arrays 1.0 MiB, "
                           "workspace [0-9.]+ MiB\n"));
}

}  // namespace
}  // namespace holdfast
