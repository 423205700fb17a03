// What the cases of loss_cases_test.cpp do not meet: classes that do not occur, NaN, and refusals.

#include "holdfast/nn/iou_metrics.h"

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

// What is reported of one sample with these shapes.
double overlap(const Metric& metric, const Shape& output_shape, const Numbers& outputs, const Numbers& targets) {
  SumsGraph graph = graph_of_metric_sums(
      *metric.as_values(), {.outputs = output_shape, .targets = Shape{static_cast<std::int64_t>(targets.size())}});
  Numbers sums(graph.element_count());
  run_on_host(std::move(graph), 1, 1, {.outputs = outputs.data(), .targets = targets.data(), .sums = sums.data()});
  return metric.result(std::vector<double>(sums.begin(), sums.end()), 1);
}

// The example of keras.metrics.MeanIoU: class 0 is found in 1 of 3 positions, and so is class 1.
TEST(MeanIoU, IsTheMeanOfItsClasses) {
  EXPECT_THAT(overlap(metrics::MeanIoU(2), Shape{4}, {0, 1, 0, 1}, {0, 0, 1, 1}), DoubleNear(1.0 / 3, 1e-6));
}

TEST(MeanIoU, LeavesOutClassesThatDoNotOccur) {
  EXPECT_THAT(overlap(metrics::MeanIoU(9), Shape{4}, {0, 1, 0, 1}, {0, 0, 1, 1}), DoubleNear(1.0 / 3, 1e-6));
  EXPECT_EQ(overlap(metrics::IoU(9, {5, 6}), Shape{2}, {0, 1}, {0, 1}), 0.0);
}

TEST(MeanIoU, DoesNotCountAnIgnoredClassOrANumberOfNone) {
  EXPECT_THAT(overlap(metrics::MeanIoU(2, {.ignore_class = 255}), Shape{5}, {0, 1, 0, 1, 1}, {0, 0, 1, 1, 255}),
              DoubleNear(1.0 / 3, 1e-6));
  EXPECT_THAT(overlap(metrics::MeanIoU(2), Shape{5}, {0, 1, 0, 1, 7}, {0, 0, 1, 1, 1}), DoubleNear(1.0 / 3, 1e-6));
  EXPECT_THAT(overlap(metrics::MeanIoU(2, {.ignore_class = 1}), Shape{4}, {0, 1, 0, 1}, {0, 0, 1, 1}),
              DoubleNear(0.25, 1e-6))
      << "class 0 in 1 of 2 positions, and class 1 as an output alone";
}

TEST(MeanIoU, TakesTheFirstOfTheLargestScores) {
  EXPECT_THAT(overlap(metrics::MeanIoU(2, {.sparse_outputs = false}), Shape{2, 2}, {0.5F, 0.5F, 0.1F, 0.9F}, {0, 1}),
              DoubleNear(1, 1e-6));
}

TEST(BinaryIoU, TakesANumberAtTheThresholdForOneAndANanForZero) {
  const float no_number = std::numeric_limits<float>::quiet_NaN();

  EXPECT_THAT(overlap(metrics::BinaryIoU(), Shape{3}, {0.5F, no_number, 0.4F}, {1, 0, 0}), DoubleNear(1, 1e-6));
}

TEST(IoU, RefusesClassesOutOfRange) {
  EXPECT_THAT(sentence_thrown_by([] { metrics::MeanIoU(0); }), HasSubstr("mean_io_u was given 0 as the number"));
  EXPECT_THAT(sentence_thrown_by([] {
                metrics::IoU(3, {0, 3});
              }),
              HasSubstr("io_u was given the target class 3; it has 3 classes, counted from 0"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::OneHotIoU(3, {-1}); }), HasSubstr("the target class -1"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::IoU(3, {}); }), HasSubstr("no target class"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::BinaryIoU({.target_class_ids = {2}}); }), HasSubstr("it has 2 classes"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::BinaryIoU({.threshold = std::numeric_limits<float>::quiet_NaN()}); }),
              HasSubstr("binary_io_u was given .threshold = nan"));
}

TEST(IoU, RefusesArraysThatDoNotFit) {
  EXPECT_THAT(sentence_thrown_by([] { metrics::OneHotMeanIoU(3).sum(Numbers(4), Numbers(4), 1); }),
              HasSubstr("one_hot_mean_io_u has 3 classes, and its outputs have the shape [4]"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::MeanIoU(3).sum(Numbers(4), Numbers(2), 1); }),
              HasSubstr("mean_io_u compares outputs of [4, 3] with targets of [2, 3]"));
}

TEST(IoU, WritesItsOptionsAsKerasDoes) {
  EXPECT_EQ(metrics::IoU(3, {0, 2}, {.ignore_class = 1, .name = "i"}).configuration(),
            R"({"kind":"io_u","num_classes":3,"target_class_ids":[0,2],"sparse_y_true":true,"ignore_class":1,)"
            R"("sparse_y_pred":true,"axis":-1,"name":"i"})");
  EXPECT_EQ(metrics::BinaryIoU().configuration(),
            R"({"kind":"binary_io_u","target_class_ids":[0,1],"threshold":0.5,"name":"binary_io_u"})");
}

}  // namespace
}  // namespace holdfast
