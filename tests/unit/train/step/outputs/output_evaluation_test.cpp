// Losses, metrics and weights that do not fit together are refused before the first step, on every back end alike.

#include "train/step/outputs/output_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "holdfast/holdfast.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "nothing was refused";
}

Sequential classes_model() {
  return Sequential{Input{3}, Dense{4, {.activation = Activation::softmax}}};
}

std::string refusal_of(const Loss& loss, const std::vector<MetricHandle>& metrics) {
  return message_of([&] { OutputEvaluation(classes_model(), {LossHandle(loss)}, metrics); });
}

// A device has no sizes of spans to compare, and would read beyond the targets.
TEST(OutputEvaluation, RefusesMetricsThatNeedOtherTargetsThanTheLoss) {
  EXPECT_THAT(refusal_of(CategoricalCrossentropy{}, {SparseCategoricalAccuracy{}}), HasSubstr("target"));
  EXPECT_THAT(refusal_of(SparseCategoricalCrossentropy{}, {CategoricalAccuracy{}}), HasSubstr("target"));
  EXPECT_THAT(refusal_of(SparseCategoricalCrossentropy{}, {MeanAbsoluteError{}}), HasSubstr("target"));
  EXPECT_NO_THROW(
      OutputEvaluation(classes_model(), {LossHandle(SparseCategoricalCrossentropy{})}, {SparseCategoricalAccuracy{}}));
}

TEST(OutputEvaluation, NamesTheMetricThatDoesNotFit) {
  EXPECT_THAT(refusal_of(SparseCategoricalCrossentropy{}, {metrics::Perplexity{{.from_logits = true}}}),
              HasSubstr("metric perplexity with from_logits"));
  // The function knows shapes alone.
  const MetricFunction own("own", [](const Value& outputs, const Value& targets) { return outputs + targets; });
  EXPECT_THAT(message_of([&] {
                OutputEvaluation(Sequential{Input{2, 3}, Dense{4, {.activation = Activation::softmax}}},
                                 {LossHandle(SparseCategoricalCrossentropy{})}, {own});
              }),
              testing::StartsWith("metric \"own\" cannot be computed: "));
}

// A loss read the bits of integers as numbers near 0.
TEST(OutputEvaluation, RefusesOutputsOfIntegers) {
  const Value ids = input({3}, {.dtype = DType::i64});
  const Model model({ids}, std::vector<NamedOutput>{{"kept_ids", reshape(ids, {3, 1})}});

  EXPECT_THAT(message_of([&] { OutputEvaluation(model, {LossHandle(MeanSquaredError{})}, {}); }),
              HasSubstr("the output \"kept_ids\" of the model is of i32, and losses and metrics take outputs of f32; "
                        "let the model give cast(x, DType::f32)"));
}

TEST(OutputEvaluation, RefusesWeightsForClasses) {
  const ArraySpec for_classes = {.name = "weights", .shape = Shape{4}};

  const OutputEvaluation classes(classes_model(), {LossHandle(CategoricalCrossentropy{})}, {CategoricalAccuracy{}});
  EXPECT_THAT(message_of([&] { classes.check_weights(for_classes); }), HasSubstr("one weight a sample"));
  const OutputEvaluation elements(classes_model(), {LossHandle(MeanSquaredError{})}, {MeanAbsoluteError{}});
  EXPECT_NO_THROW(elements.check_weights(for_classes));
}

// The remainder of a division by their number ended the process.
TEST(OutputEvaluation, RefusesWeightsWithoutANumberForASample) {
  const OutputEvaluation evaluation(classes_model(), {LossHandle(MeanSquaredError{})}, {});

  EXPECT_THAT(message_of([&] { evaluation.check_weights({.name = "weights", .shape = Shape{0}}); }),
              HasSubstr("the sample weights have the shape [0] a sample"));
}

class TwoSums final : public ValueMetric {
 public:
  TwoSums() : ValueMetric("two_sums") {}
  std::unique_ptr<Metric> clone() const override { return std::make_unique<TwoSums>(*this); }
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override {
    return {holdfast::sum(outputs * targets, {0}), holdfast::sum(targets, {0})};
  }
};

TEST(OutputEvaluation, RefusesSeveralSumsWithoutAResult) {
  EXPECT_THAT(refusal_of(MeanSquaredError{}, {TwoSums{}}), HasSubstr("override result()"));
}

// The mean of the targets of each of four classes.
class Means final : public ValueMetric {
 public:
  explicit Means(std::size_t count) : ValueMetric("means"), count_(count) {}
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Means>(*this); }
  std::vector<Value> sums(const Value&, const Value& targets) const override { return {targets}; }
  std::size_t kept_axes() const override { return 1; }
  std::vector<double> results(std::span<const double> sums, double weight) const override {
    std::vector<double> means;
    for (const double sum : sums.first(count_)) means.push_back(sum / weight);
    return means;
  }
  std::vector<std::string> result_names(const Shape&) const override { return {"a", "b", "c", "d"}; }

 private:
  std::size_t count_;
};

TEST(OutputEvaluation, NamesEachNumberOfAMetric) {
  const OutputEvaluation evaluation(classes_model(), {LossHandle(MeanSquaredError{})}, {Means(4), MeanAbsoluteError{}});

  EXPECT_THAT(evaluation.result_names(), ElementsAre("loss", "a", "b", "c", "d", "mean_absolute_error"));
  EXPECT_EQ(evaluation.sum_names().size(), 6U);
  EXPECT_THAT(evaluation.results(std::vector<double>{2, 4, 6, 8, 10, 12}, 2), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(OutputEvaluation, RefusesOtherNumbersOfResultsThanOfNames) {
  EXPECT_THAT(refusal_of(MeanSquaredError{}, {Means(3)}),
              HasSubstr("results() of metric \"means\" gave 3 numbers for the 4 of result_names()"));
}

class InheritedLoss : public MeanSquaredError {};
class InheritedMetric : public MeanAbsoluteError {};
class InheritedOptimizer : public SGD {
 public:
  InheritedOptimizer() : SGD(0.1F) {}
};

// Each would be trained as its base.
TEST(OutputEvaluation, RefusesClassesThatInheritTheirClone) {
  EXPECT_THAT(message_of([] { LossHandle(InheritedLoss{}); }), HasSubstr("must override clone()"));
  EXPECT_THAT(message_of([] { MetricHandle(InheritedMetric{}); }), HasSubstr("must override clone()"));
  const auto train = [] {
    Replica replica = Replica::alone();
    Trainer(replica, classes_model(), InheritedOptimizer{}, MeanSquaredError{});
  };
  EXPECT_THAT(message_of(train), HasSubstr("must override clone()"));
}

Dataset weighted_data() {
  return from_tensors({{"x", Tensor(Shape{8, 3})}}, {{"y", Tensor(Shape{8, 4})}},
                      Tensor(Shape{8}, std::vector<float>(8, 1)));
}

TEST(SampleWeights, ThatAMapSpoilsAreRefusedWithTheirSample) {
  const Dataset data = weighted_data().map(
      [](const SampleArrays& sample, Random&) { sample.targets.elements<float>("sample_weight")[0] = -1; }, "spoil");
  const auto train = [&] {
    Replica replica = Replica::alone();
    Trainer trainer(replica, classes_model(), SGD(0.1F), MeanSquaredError{});
    trainer.fit(data.batch(4));
  };

  EXPECT_THAT(message_of(train), HasSubstr("the weight -1"));
}

class StopsAtOnce final : public Callback {
 public:
  std::string name() const override { return "stops_at_once"; }
  void on_fit_begin(TrainingContext& context) override { context.stop_training(); }
};

TEST(OutputEvaluation, HasNoMeansWhereFitWasEndedBeforeItsFirstStep) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, classes_model(), SGD(0.1F), MeanSquaredError{}, {MeanAbsoluteError{}});

  const FitResult result = trainer.fit(weighted_data().batch(4), {.callbacks = {StopsAtOnce{}}});

  EXPECT_TRUE(std::isnan(result.results.at("loss")));
  EXPECT_TRUE(std::isnan(result.results.at("mean_absolute_error")));
}

}  // namespace
}  // namespace holdfast
