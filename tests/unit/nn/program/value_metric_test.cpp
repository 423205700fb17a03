#include "holdfast/nn/value_metric.h"

#include <gmock/gmock.h>

#include <array>
#include <vector>

#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

MetricFunction precision() {
  return {"precision",
          [](const Value& outputs, const Value& targets) {
            const Value positive = less(0.5F, outputs);
            return std::vector<Value>{positive * targets, positive};
          },
          [](std::span<const double> sums, double) { return sums[0] / sums[1]; }};
}

TEST(ValueMetric, SumsItsFirstValue) {
  EXPECT_EQ(precision().sum(std::vector<float>{0.9F, 0.2F, 0.7F}, std::vector<float>{1, 1, 1}, 3), 2.0F);
}

TEST(ValueMetric, ReportsAFunctionOfItsSums) {
  const std::array<double, 2> sums = {3, 4};

  EXPECT_EQ(precision().result(sums, 100), 0.75);
}

TEST(ValueMetric, ReportsTheMeanOfASingleValue) {
  const MetricFunction error("error", [](const Value& o, const Value& t) { return absolute(o - t); });
  const std::array<double, 1> sums = {3};

  EXPECT_EQ(error.sum(std::vector<float>{1, 2, 3, 4}, std::vector<float>{1, 1, 1, 1}, 2), 3.0F) << "means over a row";
  EXPECT_EQ(error.result(sums, 4), 0.75);
}

class PerClass final : public ValueMetric {
 public:
  PerClass() : ValueMetric("per_class") {}
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override { return {outputs, targets}; }
  std::size_t kept_axes() const override { return 1; }
  double result(std::span<const double> sums, double) const override { return sums[1] / sums[3]; }
  std::unique_ptr<Metric> clone() const override { return std::make_unique<PerClass>(*this); }
};

TEST(ValueMetric, MayHaveSumsThatAreArrays) {
  EXPECT_EQ(PerClass().sum(std::vector<float>{1, 2, 3, 4}, std::vector<float>{0, 0, 1, 1}, 2), 4.0F)
      << "the first element of the first sum";
}

TEST(ValueMetric, RefusesNoSums) {
  const MetricFunction none(
      "none", [](const Value&, const Value&) { return std::vector<Value>(); },
      [](std::span<const double>, double) { return 0.0; });

  EXPECT_THAT(sentence_thrown_by([&] { none.sum(std::vector<float>(2), std::vector<float>(2), 2); }),
              HasSubstr("metric \"none\" has no sums"));
}

TEST(ValueMetric, NeedsBothFunctions) {
  EXPECT_THAT(sentence_thrown_by([] { MetricFunction("m", MetricFunction::Functions(), {}, {}); }),
              HasSubstr("needs a function for its sums and one for its result"));
}

}  // namespace
}  // namespace holdfast
