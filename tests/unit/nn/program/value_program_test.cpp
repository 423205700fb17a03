// Graphs of losses and metrics with weights and positions.

#include "nn/program/value_program.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "holdfast/nn/functions.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kMasked = std::numeric_limits<float>::quiet_NaN();

struct Computed {
  std::vector<float> sums;
  std::vector<float> gradient;
};

Computed run_of(SumsGraph graph, std::int64_t samples, const std::vector<float>& outputs,
                const std::vector<float>& targets, const std::vector<float>& weights, bool has_gradient) {
  const auto backend = compute::make_cpu_backend(1);
  Computed run = {.sums = std::vector<float>(graph.element_count()), .gradient = std::vector<float>(outputs.size())};
  ValueProgram program(std::move(graph), *backend);
  std::vector<std::uint64_t> key;
  program.prepare(samples, 1, key);
  program.run({.outputs = outputs.data(),
               .targets = targets.data(),
               .weights = weights.empty() ? nullptr : weights.data(),
               .gradient = has_gradient ? run.gradient.data() : nullptr,
               .sums = run.sums.data()});
  return run;
}

Value log_ratio(const Value& outputs, const Value& targets) {
  return square(logarithm(outputs) - logarithm(targets));
}

TEST(ValueProgram, WeighsSamplesAndGivesMaskedOnesNoGradient) {
  const Computed run = run_of(graph_of_loss("loss", [](const Value& o, const Value& t) { return square(o - t); },
                                            {.outputs = Shape{2}, .targets = Shape{2}, .weights = Shape{}}),
                              3, {1, 2, kMasked, kMasked, 3, 5}, {0, 0, 1, 1, 1, 1}, {1, 0, 0.5F}, true);

  // Means (1 + 4) / 2 and (4 + 16) / 2.
  EXPECT_THAT(run.sums, ElementsAre(2.5F + 0.5F * 10));
  EXPECT_THAT(run.gradient, ElementsAre(1, 2, 0, 0, 1, 2));
}

// Masked zeros have an infinite logarithm, and an infinite slope.
TEST(ValueProgram, MasksPositionsWhateverTheyHold) {
  const SumsGraph graph =
      graph_of_loss("loss", log_ratio, {.outputs = Shape{2, 1}, .targets = Shape{2, 1}, .weights = Shape{2}});
  const float two = std::log(2.0F);

  const Computed run = run_of(graph, 2, {2, 0, kMasked, 4}, {1, 0, kMasked, 1}, {1, 0, 0, 3}, true);

  ASSERT_EQ(run.sums.size(), 1U);
  EXPECT_FLOAT_EQ(run.sums[0], two * two + 3 * 4 * two * two);
  EXPECT_FLOAT_EQ(run.gradient[0], two);
  EXPECT_EQ(run.gradient[1], 0.0F);
  EXPECT_EQ(run.gradient[2], 0.0F);
  EXPECT_FLOAT_EQ(run.gradient[3], 3 * 4 * two / 4);
}

TEST(ValueProgram, AveragesPositionsThatShareAWeight) {
  const DescribeSums positions = [](const Value& o, const Value&) { return std::vector<Value>{o, square(o)}; };

  const Computed run =
      run_of(graph_of_sums("metric", positions, {.outputs = Shape{2}, .targets = {}, .weights = Shape{}}), 2,
             {1, 3, 5, 9}, {0, 0}, {1, 2}, false);

  EXPECT_THAT(run.sums, ElementsAre(2 + 2 * 7, 5 + 2 * 53));
}

// Which of two thresholds each output is above, and how many outputs there are.
std::vector<Value> above_thresholds(const Value& outputs, const Value&) {
  std::vector<std::int64_t> extents = outputs.shape().extents();
  extents.push_back(1);
  const Value each = reshape(outputs, extents);
  return {concatenate({less(1.0F, each), less(3.0F, each)}), less_equal(each, each)};
}

TEST(ValueProgram, KeepsLastAxesSoThatSumsAreArrays) {
  const SumsGraph graph =
      graph_of_sums("metric", above_thresholds, {.outputs = Shape{3}, .targets = {}}, ElementsOfSum::all, 1);

  const Computed run = run_of(graph, 2, {1, 2, 3, 4, 5, 0}, {0, 0}, {}, false);

  EXPECT_EQ(graph.element_count(), 3U);
  EXPECT_THAT(run.sums, ElementsAre(4, 2, 6));
}

TEST(ValueProgram, WeighsSumsThatAreArrays) {
  const auto sums_with = [](const Shape& weight_shape, const std::vector<float>& weights) {
    return run_of(graph_of_sums("metric", above_thresholds,
                                {.outputs = Shape{3}, .targets = {}, .weights = weight_shape}, ElementsOfSum::all, 1),
                  2, {1, kMasked, 3, 4, 5, 0}, {0, 0}, weights, false)
        .sums;
  };

  EXPECT_THAT(sums_with(Shape{}, {0, 2}), ElementsAre(4, 4, 6)) << "a weight for each sample";
  EXPECT_THAT(sums_with(Shape{3}, {1, 0, 2, 0.5F, 3, 0}), ElementsAre(2 + 0.5F + 3, 0.5F + 3, 6.5F))
      << "a weight for each position";
}

TEST(ValueProgram, TakesTheMeanOfWhatIsNotKept) {
  const Computed run = run_of(graph_of_sums(
                                  "metric", [](const Value& o, const Value&) { return std::vector<Value>{o}; },
                                  {.outputs = Shape{2, 2}, .targets = {}}, ElementsOfSum::mean, 1),
                              2, {1, 2, 3, 6, 0, 4, 2, 0}, {0, 0}, {}, false);

  EXPECT_THAT(run.sums, ElementsAre(2 + 1, 4 + 2));
}

TEST(ValueProgram, RefusesSumsWithoutTheAxesToKeep) {
  const DescribeSums describe = [](const Value& o, const Value&) { return std::vector<Value>{o}; };

  EXPECT_THAT(sentence_thrown_by([&] {
                graph_of_sums("metric \"mine\"", describe, {.outputs = Shape{3}, .targets = {}}, ElementsOfSum::all, 2);
              }),
              HasSubstr("metric \"mine\" has a sum of the shape [3], and kept_axes() is 2"));
  EXPECT_THAT(sentence_thrown_by([&] {
                graph_of_sums("metric \"mine\"", describe, {.outputs = Shape{3}, .targets = {}, .weights = Shape{3}},
                              ElementsOfSum::all, 1);
              }),
              HasSubstr("the weights of a sample have the shape [3]"));
}

TEST(ValueProgram, KeepsPlansForSeveralNumbersOfSamples) {
  const auto backend = compute::make_cpu_backend(1);
  ValueProgram program(graph_of_sums("metric", [](const Value& o, const Value&) { return std::vector<Value>{o}; },
                                     {.outputs = {}, .targets = {}}),
                       *backend);
  const std::vector<float> numbers(20, 1);
  std::vector<std::uint64_t> first_key, key;
  program.prepare(1, 1, first_key);
  for (std::int64_t samples = 20; samples > 0; --samples) {
    float sum = 0;
    program.prepare(samples, 1, key);
    program.run({.outputs = numbers.data(), .targets = numbers.data(), .sums = &sum});
    EXPECT_EQ(sum, static_cast<float>(samples));
  }
  std::vector<std::uint64_t> last_key;
  program.prepare(1, 1, last_key);

  EXPECT_NE(last_key[0], first_key[0]) << "the plan is another one";
}

TEST(ValueProgram, RefusesWeightsOfOtherAxesThanTheLoss) {
  const auto mean_of_sample = [](const Value& o, const Value& t) { return mean(square(o - t)); };

  EXPECT_THAT(
      sentence_thrown_by([&] {
        graph_of_loss("loss \"mine\"", mean_of_sample,
                      {.outputs = Shape{2, 3}, .targets = Shape{2, 3}, .weights = Shape{2}});
      }),
      HasSubstr("loss \"mine\" has the shape [] for one sample, and the weights of a sample have the shape [2]"));
}

}  // namespace
}  // namespace holdfast
