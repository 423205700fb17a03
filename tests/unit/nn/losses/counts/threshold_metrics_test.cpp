// What the cases of loss_cases_test.cpp do not meet: NaN, numbers beyond probabilities, nothing to divide, and
// refusals.

#include "holdfast/nn/threshold_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "nn/program/value_function.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;
using Numbers = std::vector<float>;

constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

// What is reported of samples with one output each.
double reported(const Metric& metric, const Numbers& outputs, const Numbers& targets) {
  SumsGraph graph = graph_of_metric_sums(*metric.as_values(), {.outputs = Shape{1}, .targets = Shape{1}});
  Numbers sums(graph.element_count());
  run_on_host(std::move(graph), static_cast<std::int64_t>(outputs.size()), 1,
              {.outputs = outputs.data(), .targets = targets.data(), .sums = sums.data()});
  const std::vector<double> exact(sums.begin(), sums.end());
  return metric.result(exact, static_cast<double>(outputs.size()));
}

// The example of keras.metrics.AUC.
TEST(AUC, IsTheAreaUnderTheCurve) {
  EXPECT_THAT(reported(metrics::AUC({.num_thresholds = 3}), {0, 0.5F, 0.3F, 0.9F}, {0, 0, 1, 1}),
              DoubleNear(0.75, 1e-6));
  EXPECT_EQ(reported(metrics::AUC(), {0.1F, 0.2F, 0.8F, 0.9F}, {0, 0, 1, 1}), 1.0) << "all thresholds between them";
  EXPECT_EQ(reported(metrics::AUC(), {0.8F, 0.9F, 0.1F, 0.2F}, {0, 0, 1, 1}), 0.0);
}

TEST(AUC, IsZeroIfThereIsOnlyOneClass) {
  EXPECT_EQ(reported(metrics::AUC(), {0.1F, 0.9F}, {1, 1}), 0.0);
  EXPECT_EQ(reported(metrics::AUC({.curve = metrics::AUCCurve::pr}), {0.1F, 0.9F}, {0, 0}), 0.0);
}

TEST(AUC, TakesNumbersBeyondProbabilitiesForZeroAndOne) {
  EXPECT_EQ(reported(metrics::AUC(), {-7, 0, 1, 9}, {0, 0, 1, 1}), 1.0);
  EXPECT_EQ(reported(metrics::AUC({.thresholds = {0.5F}}), {-7, 0, 1, 9}, {0, 0, 1, 1}), 1.0);
}

TEST(AUC, TakesANanForNegative) {
  // The points of the curve are (1, 1/2), (1/2, 1/2) and (0, 0).
  EXPECT_EQ(reported(metrics::AUC({.num_thresholds = 3}), {kNoNumber, 0.9F, 0.1F, 0.6F}, {1, 1, 0, 0}), 0.375);
}

TEST(AUC, SortsItsThresholds) {
  const Numbers outputs = {0.1F, 0.4F, 0.35F, 0.8F, 0.6F}, targets = {0, 1, 0, 1, 0};

  EXPECT_EQ(reported(metrics::AUC({.thresholds = {0.75F, 0.25F, 0.5F}}), outputs, targets),
            reported(metrics::AUC({.thresholds = {0.25F, 0.5F, 0.75F}}), outputs, targets));
}

TEST(AUC, RefusesOptionsOutOfRange) {
  EXPECT_THAT(sentence_thrown_by([] { metrics::AUC({.num_thresholds = 1}); }),
              HasSubstr("auc was given .num_thresholds = 1; it is a number from 2 to 10000"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::AUC({.num_thresholds = 20'000}); }), HasSubstr("= 20000"));
  EXPECT_THAT(sentence_thrown_by([] {
                metrics::AUC({.thresholds = {0.5F, 1.5F}});
              }),
              HasSubstr("auc was given .thresholds = 1.5; it is a number from 0 to 1"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::AUC({.thresholds = {kNoNumber}}); }), HasSubstr("= nan"));
  EXPECT_THAT(sentence_thrown_by([] {
                metrics::AUC({.label_weights = {1, -1}});
              }),
              HasSubstr("auc was given .label_weights = -1"));
}

TEST(AUC, RefusesArraysThatDoNotFit) {
  EXPECT_THAT(sentence_thrown_by([] {
                metrics::AUC({.label_weights = {1, 2}}).sum(Numbers(3), Numbers(3), 1);
              }),
              HasSubstr("auc was given 2 .label_weights for outputs whose last axis has 3 elements"));
  EXPECT_THAT(
      sentence_thrown_by([] { metrics::AUC().sum(Numbers(3), Numbers(1), 1); }),
      HasSubstr("auc takes a target for each element of the outputs, which have the shape [3]; the targets have "
                "[1]"));
}

TEST(AUC, WritesItsOptionsAsKerasDoes) {
  EXPECT_EQ(metrics::AUC({.thresholds = {0.5F}, .label_weights = {1, 0.5F}, .name = "a"}).configuration(),
            R"({"kind":"auc","num_thresholds":3,"curve":"ROC","summation_method":"interpolation","multi_label":false,)"
            R"("label_weights":[1,0.5],"from_logits":false,"thresholds":[0.5],"name":"a"})");
}

// The examples of keras.metrics.
TEST(OperatingPoints, AreThoseOfKeras) {
  EXPECT_THAT(reported(metrics::PrecisionAtRecall(0.5F), {0, 0.3F, 0.8F, 0.3F, 0.8F}, {0, 0, 0, 1, 1}),
              DoubleNear(0.5, 1e-6));
  EXPECT_THAT(reported(metrics::SensitivityAtSpecificity(0.5F), {0, 0.3F, 0.8F, 0.3F, 0.8F}, {0, 0, 0, 1, 1}),
              DoubleNear(0.5, 1e-6));
  EXPECT_THAT(reported(metrics::SpecificityAtSensitivity(0.5F), {0, 0.3F, 0.8F, 0.3F, 0.8F}, {0, 0, 0, 1, 1}),
              DoubleNear(2.0 / 3, 1e-6));
}

// Four of five positive samples are above each threshold but the first and the last.
TEST(OperatingPoints, ReachAValueThatIsEqualInF32) {
  EXPECT_THAT(reported(metrics::SpecificityAtSensitivity(0.8F, {.num_thresholds = 3}),
                       {0.9F, 0.9F, 0.9F, 0.9F, 0.1F, 0.2F}, {1, 1, 1, 1, 1, 0}),
              DoubleNear(1, 1e-6));
}

TEST(OperatingPoints, AreZeroWhereNoThresholdReachesTheValue) {
  EXPECT_EQ(reported(metrics::RecallAtPrecision(1), {0.9F, 0.8F}, {0, 1}), 0.0);
}

TEST(OperatingPoints, RefuseOptionsOutOfRange) {
  EXPECT_THAT(sentence_thrown_by([] { metrics::PrecisionAtRecall(1.5F); }),
              HasSubstr("precision_at_recall was given .recall = 1.5; it is a number from 0 to 1"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::RecallAtPrecision(-1); }), HasSubstr(".precision = -1"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::SensitivityAtSpecificity(0.5F, {.num_thresholds = 0}); }),
              HasSubstr(".num_thresholds = 0; it is a number from 1"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::SpecificityAtSensitivity(0.5F, {.class_id = -1}); }),
              HasSubstr("counted from 0"));
  EXPECT_THAT(
      sentence_thrown_by([] { metrics::PrecisionAtRecall(0.5F, {.class_id = 3}).sum(Numbers(3), Numbers(3), 1); }),
      HasSubstr(".class_id = 3, but the outputs have 3 classes"));
}

}  // namespace
}  // namespace holdfast
