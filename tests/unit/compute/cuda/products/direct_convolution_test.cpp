#include "compute/arithmetic/direct_convolution.h"

#include <gtest/gtest.h>

#include "compute/cuda/products/cuda_convolution.h"
#include "unit/compute/cuda/products/support/convolution_numbers.h"

namespace holdfast::compute {
namespace {

TEST(DirectConvolutions, GiveTheHostsNumbersForAnyShape) {
  CudaContext context{0};
  std::vector<ConvolutionShape> shapes = special_convolutions();
  for (const ConvolutionShape& plain : small_convolutions()) shapes.push_back(plain);
  for (const ConvolutionShape& shape : shapes) {
    const ConvolutionNumbers numbers = random_numbers_for(shape);

    const auto operation =
        make_direct_convolution(context, shape, {.forward = true, .backward_input = true, .backward_weights = true});

    expect_near(results_on_host(shape, numbers, Precision::f32), results_of(*operation, numbers), 0, shape);
  }
}

}  // namespace
}  // namespace holdfast::compute
