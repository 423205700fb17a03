// Products of many matrices on a device at each precision, within derived tolerances of the host's: plain, transposed,
// in strides, and one matrix for all.

#include <gtest/gtest.h>

#include "compute/batched_product.h"
#include "gpu/layers/support/layer_test.h"

namespace holdfast::compute {
namespace {

class DeviceBatchedProduct : public LayerTest, public testing::WithParamInterface<Precision> {
 protected:
  Precision precision() const override { return GetParam(); }

  // The arrays have so many elements; what the product does not write must stay.
  void expect_numbers_of_the_host(const BatchedProductShape& shape, std::int64_t left_floats, std::int64_t right_floats,
                                  std::int64_t result_floats) {
    const Floats left = values(1, left_floats), right = values(2, right_floats);
    Floats expected(static_cast<std::size_t>(result_floats), 77);
    const Floats left_factors = factors_of(left), right_factors = factors_of(right);
    host().batched_product(shape)->run(left_factors.data(), right_factors.data(), expected.data());
    const DeviceArray on_left = upload(left), on_right = upload(right), result = output(result_floats);

    const auto operation = backend().batched_product(shape);
    operation->run(on_left.data(), on_right.data(), result.data());

    EXPECT_EQ(differences(expected, result.values(), product_tolerance(precision(), shape.inner)), "");
    const Floats first = result.values();
    operation->run(on_left.data(), on_right.data(), result.data());
    EXPECT_EQ(first, result.values());
  }
};

TEST_P(DeviceBatchedProduct, GivesTheHostsNumbers) {
  // 2 samples, 3 heads, 5 queries, 7 keys, a width of 4: scores of heads that lie in columns.
  expect_numbers_of_the_host({.batch_axes = 2,
                              .batch = {2, 3},
                              .rows = 5,
                              .inner = 4,
                              .columns = 7,
                              .left = {.batch = {60, 4}, .row = 12, .column = 1},
                              .right = {.batch = {84, 4}, .row = 1, .column = 12},
                              .result = {.batch = {105, 35}, .row = 7, .column = 1}},
                             120, 168, 210);
  // And the means of their values, which go to columns.
  expect_numbers_of_the_host({.batch_axes = 2,
                              .batch = {2, 3},
                              .rows = 5,
                              .inner = 7,
                              .columns = 4,
                              .left = {.batch = {105, 35}, .row = 7, .column = 1},
                              .right = {.batch = {84, 4}, .row = 12, .column = 1},
                              .result = {.batch = {60, 4}, .row = 12, .column = 1}},
                             210, 168, 120);
}

TEST_P(DeviceBatchedProduct, TakesTransposedMatricesAndOneForAll) {
  expect_numbers_of_the_host({.rows = 6,
                              .inner = 10,
                              .columns = 3,
                              .left = {.row = 1, .column = 6},
                              .right = {.row = 3, .column = 1},
                              .result = {.row = 3, .column = 1}},
                             60, 30, 18);
  expect_numbers_of_the_host({.batch_axes = 1,
                              .batch = {4},
                              .rows = 3,
                              .inner = 5,
                              .columns = 2,
                              .left = {.batch = {15}, .row = 5, .column = 1},
                              .right = {.batch = {0}, .row = 2, .column = 1},
                              .result = {.batch = {6}, .row = 2, .column = 1}},
                             60, 10, 24);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceBatchedProduct, testing::Values(Precision::f32, Precision::tf32, Precision::bf16),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace holdfast::compute
