#include "nn/losses/metric_direction.h"

#include <gtest/gtest.h>

#include "holdfast/holdfast.h"

namespace holdfast {
namespace {

// As Keras 3 has it (Metric._direction).
TEST(MetricDirection, IsThatOfKerasForMetricsOfAnyName) {
  const MetricOptions named{.name = "x"};

  EXPECT_EQ(BinaryAccuracy().best(), Best::highest);
  EXPECT_EQ(SparseCategoricalAccuracy({.name = "x"}).best(), Best::highest);
  EXPECT_EQ(metrics::AUC().best(), Best::highest);
  EXPECT_EQ(metrics::Precision().best(), Best::highest);
  EXPECT_EQ(metrics::F1Score().best(), Best::highest);
  EXPECT_EQ(metrics::MeanIoU(3).best(), Best::highest);
  EXPECT_EQ(metrics::R2Score().best(), Best::highest);
  EXPECT_EQ(metrics::CosineSimilarity().best(), Best::highest);
  EXPECT_EQ(metrics::SensitivityAtSpecificity(0.5F).best(), Best::highest);
  EXPECT_EQ(MeanAbsoluteError(named).best(), Best::lowest);
  EXPECT_EQ(metrics::RootMeanSquaredError(named).best(), Best::lowest);
  EXPECT_EQ(metrics::Hinge(named).best(), Best::lowest);
  EXPECT_EQ(metrics::KLDivergence(named).best(), Best::lowest);
}

TEST(MetricDirection, IsUnknownOfCountsAndOfMetricsOfTheApplication) {
  const MetricFunction mine("accuracy", [](const Value& outputs, const Value& targets) { return outputs - targets; });

  EXPECT_EQ(metrics::TruePositives().best(), std::nullopt);
  EXPECT_EQ(metrics::FalseNegatives().best(), std::nullopt);
  EXPECT_EQ(mine.best(), std::nullopt);
}

TEST(MetricDirection, FollowsFromTheEndOfAName) {
  EXPECT_EQ(direction_of_name("val_loss"), Best::lowest);
  EXPECT_EQ(direction_of_name("price_loss"), Best::lowest);
  EXPECT_EQ(direction_of_name("val_accuracy"), Best::highest);
  EXPECT_EQ(direction_of_name("head_sparse_categorical_accuracy"), Best::highest);
  EXPECT_EQ(direction_of_name("val_auc"), Best::highest);
  EXPECT_EQ(direction_of_name("gloss"), std::nullopt);
  EXPECT_EQ(direction_of_name("mood"), std::nullopt);
}

}  // namespace
}  // namespace holdfast
