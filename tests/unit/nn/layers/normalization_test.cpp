#include "holdfast/nn/normalization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "holdfast/nn/dense.h"
#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Floats = std::vector<float>;

// Initial buffers of the model.
Floats initial_buffers(const Model& model) {
  Floats parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(1, parameters, buffers);
  return buffers;
}

Floats applied_to(const Normalization& layer, const Tensor& x) {
  Sequential model{Input(x.shape().without_batch()), layer};
  model.set_weights({}, initial_buffers(model));
  return model.predict(x).values();
}

TEST(Normalization, AdaptsToMeanAndVarianceOfEachFeature) {
  const Tensor samples({4, 2}, {1, 10, 2, 10, 3, 10, 6, 10});

  const Normalization layer = Normalization{}.adapt(samples);

  EXPECT_THAT(layer.options().mean, ElementsAre(3, 10));
  EXPECT_THAT(layer.options().variance, ElementsAre(3.5F, 0));
  EXPECT_THAT(applied_to(Normalization{{.mean = {1, 2}, .variance = {4, 0.25F}}}, Tensor({1, 2}, {3, 1})),
              ElementsAre(1, -2));
}

TEST(Normalization, InvertsItself) {
  EXPECT_THAT(
      applied_to(Normalization{{.mean = {1, 2}, .variance = {4, 0.25F}, .invert = true}}, Tensor({1, 2}, {1, -2})),
      ElementsAre(3, 1));
}

TEST(Normalization, HasStatisticsAlongTheAxesThatItWasGiven) {
  const Tensor samples({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});

  EXPECT_THAT(Normalization{}.adapt(samples).options().mean, ElementsAre(4, 5));
  EXPECT_THAT(Normalization{{.axis = {0}}}.adapt(samples).options().mean, ElementsAre(3.5F, 5.5F));
  EXPECT_THAT((Normalization{{.axis = {0, 1}}}.adapt(samples).options().mean), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(Normalization{{.axis = {}}}.adapt(samples).options().mean, ElementsAre(4.5F));
  EXPECT_THAT(Normalization{{.axis = {}}}.adapt(samples).options().variance, ElementsAre(5.25F));
}

TEST(NormalizationStatistics, CountNothingOfASampleThatTheyRefuse) {
  NormalizationStatistics statistics(Normalization{}, Shape{2});
  const Floats first = {1, 10}, wrong = {5, std::nanf("")}, second = {3, 20};

  statistics.add(first);
  EXPECT_THAT(refusal([&] { statistics.add(wrong); }), HasSubstr("nan in element 1"));
  statistics.add(second);

  EXPECT_THAT(statistics.adapted().options().mean, ElementsAre(2, 15));
  EXPECT_THAT(statistics.adapted().options().variance, ElementsAre(1, 25));
}

TEST(Normalization, ComputesInDouble) {
  // In f32, squares of 1e4 would hide a variance of 0.25.
  Tensor samples({20000, 1});
  for (std::size_t i = 0; i < 20000; ++i) samples.values()[i] = 1e4F + static_cast<float>(i % 2);

  const Normalization layer = Normalization{}.adapt(samples);

  EXPECT_EQ(layer.options().mean[0], 10000.5F);
  EXPECT_NEAR(layer.options().variance[0], 0.25, 1e-6);
}

TEST(Normalization, ItsNumbersAreBuffersThatLoadedWeightsReplace) {
  Sequential model{Input{2}, Normalization{{.mean = {1, 2}, .variance = {4, 9}}}};

  ASSERT_EQ(model.buffers().entries().size(), 2U);
  EXPECT_EQ(model.buffers().entries()[0].name, "normalization/mean");
  EXPECT_EQ(model.parameters().entries().size(), 0U);
  Floats buffers = initial_buffers(model);
  EXPECT_THAT(Floats(buffers.begin(), buffers.begin() + 2), ElementsAre(1, 2));
  model.buffers().view(std::span<float>(buffers), 0)[0] = 5;
  model.set_weights({}, buffers);
  EXPECT_THAT(model.predict(Tensor({1, 2}, {7, 5})).values(), ElementsAre(1, 1));
}

TEST(Normalization, TrainingReadsTheBuffersToo) {
  const Sequential model{Input{2}, Normalization{{.mean = {1, 2}, .variance = {4, 9}}}};
  const Floats buffers = initial_buffers(model);
  const Floats features = {3, 8};
  ModelProgram program(model, 1);
  program.read_buffers_from(buffers);

  const auto outputs = program.forward_training(features, 1, {}, {});

  EXPECT_THAT(Floats(outputs.begin(), outputs.end()), ElementsAre(1, 2));
}

TEST(Normalization, LeavesFeaturesAloneUntilItIsAdapted) {
  EXPECT_THAT(applied_to(Normalization{}, Tensor({1, 2}, {3, 8})), ElementsAre(3, 8));
  EXPECT_THAT(applied_to(Normalization{{.mean = {1}, .variance = {4}}}, Tensor({1, 2}, {3, 8})), ElementsAre(1, 3.5F));
}

TEST(Normalization, IsWrittenToTheGraphAndReadFromIt) {
  const Sequential model{Input{3, 2},
                         Normalization{{.axis = {0, 1}, .invert = true}}.adapt(Tensor({1, 3, 2}, {1, 2, 3, 4, 5, 6})),
                         Normalization{}};

  const Sequential read = Sequential::from_graph(model.graph());

  EXPECT_EQ(read.graph(), model.graph());
  EXPECT_EQ(initial_buffers(read), initial_buffers(model));
}

TEST(Normalization, RefusesOptionsAndDataThatItCannotTake) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(refusal([] { Normalization{{.mean = {1}}}; }), HasSubstr("as many means as variances, not 1 and 0"));
  EXPECT_THAT(refusal([] { Normalization{{.mean = {1}, .variance = {-1}}}; }), HasSubstr("number 0 is 1 and -1"));
  EXPECT_THAT(refusal([] { Normalization{{.axis = {1, 1}}}; }), HasSubstr("needs different axes, not [1, 1]"));
  EXPECT_THAT(refusal([] {
                Sequential{Input{3}, Normalization{{.mean = {1, 2}, .variance = {1, 2}}}};
              }),
              HasSubstr("it has 2 means and variances, but the input has 3 positions"));
  EXPECT_THAT(refusal([] { Sequential{Input{3}, Normalization{{.axis = {0, -1}}}}; }), HasSubstr("axis -1 twice"));
  EXPECT_THAT(refusal([] { Normalization{}.adapt(Tensor({0, 2})); }), HasSubstr("cannot adapt to no samples"));
  EXPECT_THAT(refusal([&] {
                Normalization{}.adapt(Tensor({1, 2}, {1, infinity}));
              }),
              HasSubstr("cannot adapt to inf in element 1 of a sample"));
}

}  // namespace
}  // namespace holdfast
