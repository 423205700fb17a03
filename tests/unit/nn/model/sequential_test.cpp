#include "holdfast/nn/sequential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <omp.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/activation_layer.h"
#include "holdfast/nn/average_pooling2d.h"
#include "holdfast/nn/batch_normalization.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/dropout.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/max_pooling2d.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Sequential lenet() {
  return Sequential{Input{28, 28, 1},
                    Conv2D{6, 5, {.activation = Activation::relu}},
                    MaxPooling2D{2},
                    Conv2D{16, 5, {.activation = Activation::relu}},
                    MaxPooling2D{2},
                    Flatten{},
                    Dense{120, {.activation = Activation::relu}},
                    Dense{84, {.activation = Activation::relu}},
                    Dense{10}};
}

std::vector<std::string> entry_names(const ArenaLayout& layout) {
  std::vector<std::string> names;
  for (const ArenaEntry& entry : layout.entries()) names.push_back(entry.name);
  return names;
}

std::vector<std::string> layer_names(const Sequential& model) {
  std::vector<std::string> names;
  for (const SequentialLayer& layer : model.layers()) names.push_back(layer.name);
  return names;
}

template <class Action>
std::string error_of(ErrorCode code, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

void give_random_weights(Sequential& model, std::uint64_t seed) {
  std::vector<float> parameters(model.parameters().float_count());
  std::vector<float> buffers(model.buffers().float_count());
  model.initialize(seed, parameters, buffers);
  model.set_weights(std::move(parameters), std::move(buffers));
}

TEST(Sequential, KnowsTheShapesOfEachLayer) {
  const Sequential model = lenet();

  EXPECT_EQ(model.input_shape(), (Shape{28, 28, 1}));
  EXPECT_EQ(model.layers()[0].output_shape, (Shape{24, 24, 6}));
  EXPECT_EQ(model.layers()[1].output_shape, (Shape{12, 12, 6}));
  EXPECT_EQ(model.layers()[3].output_shape, (Shape{4, 4, 16}));
  EXPECT_EQ(model.layers()[4].output_shape, (Shape{256}));
  EXPECT_EQ(model.output_shape(), (Shape{10}));
}

TEST(Sequential, CountsTheParametersOfLargeModelsWithoutMakingThem) {
  const Sequential model{Input{8000}, Dense{4000}, Dense{2000}, Dense{500}, Dense{300}, Dense{1}};

  EXPECT_EQ(model.parameters().element_count(), 41'157'101U);
  EXPECT_FALSE(model.has_weights());
}

TEST(Sequential, NamesLayersAsKerasDoes) {
  const Sequential model{Input{8, 8, 1},  Conv2D{2, 1},
                         Conv2D{2, 1},    BatchNormalization{},
                         MaxPooling2D{2}, AveragePooling2D{2},
                         Dropout{0.5F},   ActivationLayer{Activation::relu},
                         Flatten{},       Dense{2},
                         Dense{2},        Dense{1}};

  EXPECT_EQ(layer_names(model),
            (std::vector<std::string>{"conv2d", "conv2d_1", "batch_normalization", "max_pooling2d", "average_pooling2d",
                                      "dropout", "activation", "flatten", "dense", "dense_1", "dense_2"}));
}

TEST(Sequential, SkipsNamesThatAreTaken) {
  const Sequential model{Input{2}, Dense{2}, Dense{2}, Dense{2, {.name = "dense"}}, Dense{2, {.name = "dense_2"}}};

  EXPECT_EQ(layer_names(model), (std::vector<std::string>{"dense_1", "dense_3", "dense", "dense_2"}));
}

TEST(Sequential, RefusesTwoLayersOfOneName) {
  const std::string sentence = error_of(ErrorCode::invalid_argument, [] {
    Sequential{Input{2}, Dense{2, {.name = "head"}}, Dense{2, {.name = "head"}}};
  });

  EXPECT_THAT(sentence, HasSubstr("\"head\""));
}

TEST(Sequential, RefusesNamesThatWouldNotBecomePartsOfPaths) {
  for (const std::string name : {"a/b", ".", "..", ".hidden", "a b", "caf\xC3\xA9"}) {
    EXPECT_THROW((Dense{1, {.name = name}}), Error) << name;
  }
  EXPECT_THROW((Dense{1, {.name = std::string(101, 'a')}}), Error);
  EXPECT_NO_THROW((Dense{1, {.name = std::string(100, 'a')}}));
}

TEST(Sequential, NamesItsWeightsByLayer) {
  const Sequential model{Input{4, 4, 1}, Conv2D{2, 3, {.use_bias = false}}, BatchNormalization{}, Flatten{}, Dense{1}};

  EXPECT_EQ(entry_names(model.parameters()),
            (std::vector<std::string>{"conv2d/kernel", "batch_normalization/gamma", "batch_normalization/beta",
                                      "dense/kernel", "dense/bias"}));
  EXPECT_EQ(entry_names(model.buffers()),
            (std::vector<std::string>{"batch_normalization/moving_mean", "batch_normalization/moving_variance"}));
}

TEST(Sequential, SaysWhichLayerCannotTakeWhat) {
  const std::string rank = error_of(ErrorCode::invalid_argument, [] {
    Sequential{Input{784}, Dense{10}, Conv2D{6, 5}};
  });
  const std::string window = error_of(ErrorCode::invalid_argument, [] {
    Sequential{Input{4, 7, 2}, MaxPooling2D{{5, 6}, {.name = "shrink"}}};
  });

  EXPECT_THAT(rank, AllOf(HasSubstr("\"conv2d\" (Conv2D)"), HasSubstr("[10]"), HasSubstr("[height, width, channels]")));
  EXPECT_THAT(window, AllOf(HasSubstr("\"shrink\" (MaxPooling2D)"), HasSubstr("[4, 7, 2]"), HasSubstr("5 x 6")));
}

TEST(Sequential, RefusesShapesThatFitIntoNoMemory) {
  const std::int64_t large = Layer::kMaximumExtent;
  EXPECT_THROW(Input({}), Error);
  EXPECT_THROW((Input{28, 0}), Error);
  EXPECT_THROW((Input{large + 1}), Error);
  EXPECT_THROW((Sequential{Input{large, large}}), Error);
  EXPECT_THROW((Sequential{Input{large}, Dense{large}}), Error);
  EXPECT_THROW((Sequential{Input{3, 3, large}, Conv2D{large, 3}}), Error);
  EXPECT_THROW((Sequential{Input{large, 1}, Dense{large}}), Error);
}

TEST(Sequential, TakesNoMoreLayersThanDropoutCanDistinguish) {
  std::vector<std::shared_ptr<const Layer>> layers(Sequential::kMaximumLayers, std::make_shared<const Flatten>());
  EXPECT_NO_THROW(Sequential(Input{1}, layers));

  layers.push_back(std::make_shared<const Flatten>());

  EXPECT_THROW(Sequential(Input{1}, layers), Error);
}

TEST(Sequential, InitialWeightsDependOnTheSeedAlone) {
  const Sequential model = lenet();
  const std::size_t count = model.parameters().float_count();
  std::vector<float> first(count, 5.0F), again(count, 6.0F), other(count);

  model.initialize(1, first, {});
  model.initialize(1, again, {});
  model.initialize(2, other, {});

  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

TEST(Sequential, InitialWeightsAreThoseOfTheInitializersAndPaddingIsZero) {
  const Sequential model{Input{3}, Dense{5}, BatchNormalization{}};
  std::vector<float> parameters(model.parameters().float_count(), 5.0F);
  std::vector<float> buffers(model.buffers().float_count(), 5.0F);

  model.initialize(3, parameters, buffers);

  std::vector<float> expected(parameters.size());
  const auto expected_view = [&](std::size_t entry) { return model.parameters().view(std::span(expected), entry); };
  Initializer::glorot_uniform().fill(expected_view(0), 3, 5, Random(3, Purpose::initial_weights, 0, 0));
  std::fill(expected_view(2).begin(), expected_view(2).end(), 1.0F);
  EXPECT_EQ(parameters, expected);
  std::vector<float> expected_buffers(buffers.size());
  const auto variance = model.buffers().view(std::span(expected_buffers), 1);
  std::fill(variance.begin(), variance.end(), 1.0F);
  EXPECT_EQ(buffers, expected_buffers);
}

TEST(Sequential, CopiesShareTheirWeights) {
  Sequential model{Input{2}, Dense{2}};
  Sequential copy = model;

  give_random_weights(copy, 1);

  ASSERT_TRUE(model.has_weights());
  EXPECT_EQ(model.parameter_values().data(), copy.parameter_values().data());
}

TEST(Sequential, RefusesWeightsOfAnotherSize) {
  Sequential model{Input{2}, Dense{2}, BatchNormalization{}};
  const std::size_t parameters = model.parameters().float_count();
  const std::size_t buffers = model.buffers().float_count();

  EXPECT_THROW(model.set_weights(std::vector<float>(parameters - 1), std::vector<float>(buffers)), Error);
  EXPECT_THROW(model.set_weights(std::vector<float>(parameters), std::vector<float>(buffers + 1)), Error);
  EXPECT_FALSE(model.has_weights());
}

TEST(Sequential, HasNothingToShowOrPredictWithoutWeights) {
  const Sequential model{Input{2}, Dense{2}};

  EXPECT_THROW(model.parameter_values(), Error);
  EXPECT_THROW(model.buffer_values(), Error);
  EXPECT_THROW(model.predict(Tensor({1, 2})), Error);
}

TEST(Sequential, PredictsTheSameUpToRoundingForEveryBatchSize) {
  Sequential model = lenet();
  give_random_weights(model, 4);
  const Tensor x({11, 28, 28, 1}, reference::random_values(11 * 784, 5));
  const Tensor whole = model.predict(x, 32);

  for (const std::int64_t batch_size : {1, 4, 11}) {
    const Tensor y = model.predict(x, batch_size);

    ASSERT_EQ(y.shape(), (Shape{11, 10}));
    // Sums of at most 256 terms in five layers in a row. With glorot weights values stay around 1, and rounding errors
    // of random sign grow with the root of their number: below 5 * 16 * 2^-24 * 1; ten times that.
    for (std::size_t i = 0; i < y.values().size(); ++i) {
      EXPECT_NEAR(y.values()[i], whole.values()[i], 10 * 5 * 16 * 0x1p-24) << i;
    }
  }
}

TEST(Sequential, PredictsTheSameBitsAgain) {
  Sequential model = lenet();
  give_random_weights(model, 4);
  const Tensor x({9, 28, 28, 1}, reference::random_values(9 * 784, 5));

  const Tensor first = model.predict(x, 4);
  const Tensor second = model.predict(x, 4);

  EXPECT_TRUE(std::ranges::equal(first.values(), second.values()));
}

TEST(Sequential, PredictsNothingForNothing) {
  Sequential model{Input{2}, Dense{3}};
  give_random_weights(model, 1);

  EXPECT_EQ(model.predict(Tensor({0, 2})).shape(), (Shape{0, 3}));
}

TEST(Sequential, RefusesToPredictFromOtherShapes) {
  Sequential model{Input{4}, Dense{3}};
  give_random_weights(model, 1);

  EXPECT_THROW(model.predict(Tensor({4})), Error);
  EXPECT_THROW(model.predict(Tensor({1, 5})), Error);
  EXPECT_THROW(model.predict(Tensor({1, 2, 2})), Error);
  EXPECT_THROW(model.predict(Tensor({1, 4}), 0), Error);
}

TEST(Sequential, MayHaveNoLayers) {
  Sequential model{Input{2, 2}};
  model.set_weights({}, {});

  const Tensor y = model.predict(Tensor({1, 2, 2}, {1, 2, 3, 4}));

  EXPECT_EQ(y.shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(y.values()[3], 4.0F);
}

TEST(Sequential, PredictingLeavesTheApplicationsThreadsAlone) {
  Sequential model{Input{2}, Dense{3}};
  give_random_weights(model, 1);
  const int before = omp_get_max_threads();

  model.predict(Tensor({1, 2}));

  EXPECT_EQ(omp_get_max_threads(), before);
}

}  // namespace
}  // namespace holdfast
