// Metrics on a device, compared with the classes of nn/ on the host.

#include "holdfast/nn/metric.h"

#include <cmath>

#include "gpu/support/gpu_test.h"
#include "holdfast/core/random.h"
#include "holdfast/nn/binary_accuracy.h"
#include "holdfast/nn/categorical_accuracy.h"
#include "holdfast/nn/mean_absolute_error.h"
#include "holdfast/nn/sparse_categorical_accuracy.h"
#include "support/special_floats.h"

namespace holdfast {
namespace {

using Values = std::vector<float>;

class DeviceMetric : public GpuTest {
 protected:
  float sum_on_device(const Metric& metric, const Values& outputs, const Values& targets, std::int64_t samples) {
    const DeviceArray device_outputs = upload(outputs);
    const DeviceArray device_targets = upload(targets);
    const DeviceArray sum = upload(Values(1, 99));
    kernels().metric(shape_of(metric, samples, outputs), {device_outputs.data(), device_targets.data()}, sum.data());
    return sum.values()[0];
  }

  float weighted_sum_on_device(const Metric& metric, const Values& outputs, const Values& targets,
                               const Values& weights) {
    const DeviceArray device_outputs = upload(outputs);
    const DeviceArray device_targets = upload(targets);
    const DeviceArray device_weights = upload(weights);
    const DeviceArray sum = upload(Values(1, 99));
    kernels().metric(shape_of(metric, static_cast<std::int64_t>(weights.size()), outputs),
                     {device_outputs.data(), device_targets.data(), device_weights.data()}, sum.data());
    return sum.values()[0];
  }

  static compute::MetricShape shape_of(const Metric& metric, std::int64_t rows, const Values& outputs) {
    compute::MetricShape shape;
    EXPECT_TRUE(metric.describe_kernel(shape));
    shape.rows = rows;
    shape.outputs = static_cast<std::int64_t>(outputs.size()) / rows;
    return shape;
  }

  // Counts are whole numbers, so the device has the bits of the host.
  void expect_host_sum(const Metric& metric, const Values& outputs, const Values& targets, std::int64_t samples) {
    EXPECT_EQ(sum_on_device(metric, outputs, targets, samples), metric.sum(outputs, targets, samples))
        << metric.name() << " of " << samples << " samples, " << outputs.size() << " outputs";
  }
};

struct MetricBatchSize {
  std::size_t samples;
  std::size_t outputs;
};

// Rows for a warp and for a block; one row, and more rows than the largest grid has warps.
const std::vector<MetricBatchSize> kMetricSizes = {{1, 1},    {1, 2},     {3, 10},   {128, 10}, {257, 33},
                                                   {5, 1000}, {64, 1024}, {7, 1025}, {8200, 3}};

TEST_F(DeviceMetric, SparseCategoricalAccuracyIsThatOfTheHost) {
  for (const MetricBatchSize size : kMetricSizes) {
    const Values outputs = random_values(1, size.samples * size.outputs);
    Values labels(size.samples);
    for (std::size_t sample = 0; sample < size.samples; ++sample) {
      // Every second one is right.
      const auto row = outputs.begin() + static_cast<std::ptrdiff_t>(sample * size.outputs);
      const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(size.outputs)) - row;
      labels[sample] = static_cast<float>(best + (sample % 2 == 0 ? 0 : 1));
    }

    expect_host_sum(SparseCategoricalAccuracy(), outputs, labels, static_cast<std::int64_t>(size.samples));
  }
}

TEST_F(DeviceMetric, CategoricalAccuracyIsThatOfTheHost) {
  for (const MetricBatchSize size : kMetricSizes) {
    const Values outputs = random_values(1, size.samples * size.outputs);
    Values targets = random_values(2, size.samples * size.outputs);
    std::copy_n(outputs.begin(), outputs.size() / 2, targets.begin());

    expect_host_sum(CategoricalAccuracy(), outputs, targets, static_cast<std::int64_t>(size.samples));
  }
}

TEST_F(DeviceMetric, TakesAWeightForEachRowAndDoesNotLookAtMaskedOnes) {
  const Values weights = {1, 0, 2, 0.5F};
  const Values outputs = {0, 1, kNaN, kNaN, 1, 0, 0.75F, 0.25F};

  EXPECT_EQ(weighted_sum_on_device(SparseCategoricalAccuracy(), outputs, {1, 0, 1, 0}, weights), 1.5F);
  EXPECT_EQ(weighted_sum_on_device(CategoricalAccuracy(), outputs, {0, 1, 1, 0, 0, 1, 1, 0}, weights), 1.5F);
  // Shares of right elements: 2 / 2, masked, 0 / 2 and 1 / 2.
  EXPECT_EQ(weighted_sum_on_device(BinaryAccuracy(), outputs, {0, 1, 1, 0, 0, 1, 1, 1}, weights), 1.25F);
  EXPECT_EQ(weighted_sum_on_device(MeanAbsoluteError(), outputs, {0, 0, 0, 0, 0, 0, 0.75F, 0.75F}, weights), 1.625F);
}

TEST_F(DeviceMetric, CategoricalAccuracyTakesTheFirstOfEqualsAndNoLaterNan) {
  const std::vector<Values> rows = {{1, 1, 0},
                                    {0, 1, 1},
                                    {kNaN, 1, 2},
                                    {0, kNaN, 2},
                                    {0, 2, kNaN},
                                    {kNaN, kNaN, kNaN},
                                    {-kInfinity, -kInfinity, -kInfinity},
                                    {-kInfinity, kInfinity, kInfinity}};
  for (const Values& row : rows) {
    for (const float label : {0.0F, 1.0F, 2.0F}) expect_host_sum(SparseCategoricalAccuracy(), row, {label}, 1);
  }
}

TEST_F(DeviceMetric, BinaryAccuracyIsThatOfTheHost) {
  for (const MetricBatchSize size : kMetricSizes) {
    const Values outputs = random_values(1, size.samples * size.outputs);
    Values targets = random_values(2, outputs.size());
    for (float& target : targets) target = target > 0 ? 1 : 0;

    expect_host_sum(BinaryAccuracy({.threshold = 0.25F}), outputs, targets, static_cast<std::int64_t>(size.samples));
  }
}

// The sums are in double in another order. The difference is far below one rounding to float.
TEST_F(DeviceMetric, MeanAbsoluteErrorIsThatOfTheHost) {
  for (const MetricBatchSize size : kMetricSizes) {
    const Values outputs = random_values(1, size.samples * size.outputs);
    const Values targets = random_values(2, outputs.size());
    const auto samples = static_cast<std::int64_t>(size.samples);
    const float expected = MeanAbsoluteError().sum(outputs, targets, samples);

    const float actual = sum_on_device(MeanAbsoluteError(), outputs, targets, samples);

    EXPECT_NEAR(actual, expected, 0x1p-23 * expected) << size.samples << "x" << size.outputs;
    EXPECT_EQ(sum_on_device(MeanAbsoluteError(), outputs, targets, samples), actual);
  }
}

}  // namespace
}  // namespace holdfast
