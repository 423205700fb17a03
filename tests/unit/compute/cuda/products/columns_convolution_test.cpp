#include <gtest/gtest.h>

#include "compute/cuda/products/cuda_convolution.h"
#include "emulation/host_cublas.h"
#include "unit/compute/cuda/products/support/convolution_numbers.h"

namespace holdfast::compute {
namespace {

class ConvolutionsByColumns : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override { host_cublas::library() = {}; }
  void TearDown() override { EXPECT_FALSE(host_cublas::library().was_misled); }

  CudaContext context_{0};
};

TEST_P(ConvolutionsByColumns, GiveTheHostsNumbers) {
  for (const ConvolutionShape& shape : small_convolutions()) {
    const ConvolutionNumbers numbers = random_numbers_for(shape);

    const auto operation = make_columns_convolution(
        context_, GetParam(), shape, {.forward = true, .backward_input = true, .backward_weights = true});

    expect_near(results_on_host(shape, numbers, GetParam()), results_of(*operation, numbers), 0, shape);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, ConvolutionsByColumns,
                         testing::Values(Precision::f32, Precision::tf32, Precision::bf16),
                         [](const auto& instance) { return std::string(name(instance.param)); });

}  // namespace
}  // namespace holdfast::compute
