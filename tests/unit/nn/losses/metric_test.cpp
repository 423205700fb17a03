#include "holdfast/nn/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/nn/binary_accuracy.h"
#include "holdfast/nn/categorical_accuracy.h"
#include "holdfast/nn/mean_absolute_error.h"
#include "holdfast/nn/sparse_categorical_accuracy.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

TEST(SparseCategoricalAccuracy, CountsSamplesWhoseLargestOutputIsTheTarget) {
  const Floats outputs = {0.1F, 0.6F, 0.3F, 0.05F, 0.95F, 0, 7, -1, 2};

  EXPECT_EQ(SparseCategoricalAccuracy{}.sum(outputs, Floats{2, 1, 0}, 3), 2.0F);
}

TEST(SparseCategoricalAccuracy, TakesTheFirstOfEqualOutputs) {
  EXPECT_EQ(SparseCategoricalAccuracy{}.sum(Floats{0.5F, 0.5F, 0.5F, 0.5F}, Floats{0, 1}, 2), 1.0F);
}

TEST(SparseCategoricalAccuracy, CountsAnImpossibleTargetAsAMiss) {
  EXPECT_EQ(SparseCategoricalAccuracy{}.sum(Floats{0, 1, 0, 1, 0, 1}, Floats{-1, 2, 1.5F}, 3), 0.0F);
}

TEST(CategoricalAccuracy, CountsSamplesWhoseLargestOutputAndTargetStandAtOnePlace) {
  const Floats outputs = {0.1F, 0.9F, 0.8F, 0.05F, 0.95F, 0};
  const Floats targets = {0, 0, 1, 0, 1, 0};

  EXPECT_EQ(CategoricalAccuracy{}.sum(outputs, targets, 2), 1.0F);
}

TEST(BinaryAccuracy, AveragesOverTheElementsOfASample) {
  // The example of keras.metrics.BinaryAccuracy as two samples of two: three of four are right.
  EXPECT_EQ(BinaryAccuracy{}.sum(Floats{0.98F, 1, 0, 0.6F}, Floats{1, 1, 0, 0}, 2), 1.5F);
}

TEST(BinaryAccuracy, CountsTheThresholdItselfAsNo) {
  EXPECT_EQ(BinaryAccuracy{}.sum(Floats{0.5F}, Floats{0}, 1), 1.0F);
  EXPECT_EQ(BinaryAccuracy{{.threshold = 0}}.sum(Floats{-0.1F, 0.1F}, Floats{0, 1}, 2), 2.0F);
}

TEST(BinaryAccuracy, RefusesAThresholdThatIsNotFinite) {
  EXPECT_THROW(BinaryAccuracy{{.threshold = std::numeric_limits<float>::quiet_NaN()}}, Error);
  EXPECT_THROW(BinaryAccuracy{{.threshold = std::numeric_limits<float>::infinity()}}, Error);
}

TEST(MeanAbsoluteError, AveragesOverTheElementsOfASample) {
  EXPECT_EQ(MeanAbsoluteError{}.sum(Floats{1, 1, 1, -3}, Floats{0, 1, 0, 0}, 2), 2.5F);
}

class EveryMetric : public testing::TestWithParam<const Metric*> {
 protected:
  const Metric& metric() const { return *GetParam(); }
};

TEST_P(EveryMetric, SumsToZeroOverNoSamples) {
  EXPECT_EQ(metric().sum({}, {}, 0), 0.0F);
}

TEST_P(EveryMetric, IsClonedWithItsOptions) {
  const std::unique_ptr<Metric> clone = metric().clone();

  EXPECT_EQ(clone->name(), metric().name());
  EXPECT_EQ(clone->configuration(), metric().configuration());
}

TEST_P(EveryMetric, RefusesSpansThatDoNotFitTogether) {
  const Floats seven(7);
  for (const std::int64_t samples : {-1, 0, 2}) {
    try {
      metric().sum(seven, seven, samples);
      ADD_FAILURE() << "took 7 outputs for " << samples << " samples";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(metric().name() + " was given 7 outputs"));
    }
  }
  EXPECT_THROW(metric().sum(Floats(6), Floats(5), 2), Error);
  EXPECT_THROW(metric().sum({}, Floats(2), 2), Error);
}

const SparseCategoricalAccuracy kSparse;
const CategoricalAccuracy kCategorical;
const BinaryAccuracy kBinary;
const MeanAbsoluteError kAbsolute;

INSTANTIATE_TEST_SUITE_P(, EveryMetric, testing::Values(&kSparse, &kCategorical, &kBinary, &kAbsolute));

TEST(Metric, HasTheNameOfKerasByDefault) {
  EXPECT_EQ(kSparse.name(), "sparse_categorical_accuracy");
  EXPECT_EQ(kCategorical.name(), "categorical_accuracy");
  EXPECT_EQ(kBinary.name(), "binary_accuracy");
  EXPECT_EQ(kAbsolute.name(), "mean_absolute_error");
}

TEST(Metric, TakesAnotherNameIntoItsConfiguration) {
  const SparseCategoricalAccuracy accuracy{{.name = "accuracy"}};

  EXPECT_EQ(accuracy.name(), "accuracy");
  EXPECT_EQ(accuracy.configuration(), R"({"kind":"sparse_categorical_accuracy","name":"accuracy"})");
  EXPECT_EQ((BinaryAccuracy{{.threshold = 0.25F, .name = "a"}}).configuration(),
            R"({"kind":"binary_accuracy","threshold":0.25,"name":"a"})");
}

}  // namespace
}  // namespace holdfast
