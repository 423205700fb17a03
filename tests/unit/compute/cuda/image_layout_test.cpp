#include "compute/cuda/products/image_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::compute {
namespace {

using testing::ElementsAre;

const ConvolutionShape kShape = {.samples = 8,
                                 .height = 28,
                                 .width = 20,
                                 .channels = 6,
                                 .filters = 16,
                                 .kernel_height = 5,
                                 .kernel_width = 3,
                                 .stride_height = 1,
                                 .stride_width = 2};

TEST(ImageLayout, NamesChannelsSecondAndStoresThemLast) {
  const ImageLayout input = layout_of_input(kShape);

  EXPECT_THAT(input.extents, ElementsAre(8, 6, 28, 20));
  EXPECT_THAT(input.strides, ElementsAre(28 * 20 * 6, 1, 20 * 6, 6));
  EXPECT_EQ(input.alignment, 16);
}

TEST(ImageLayout, NamesAndStoresFiltersFirstInACopyOfTheKernel) {
  const ImageLayout kernel = layout_of_kernel_copy(kShape);

  EXPECT_THAT(kernel.extents, ElementsAre(16, 6, 5, 3));
  EXPECT_THAT(kernel.strides, ElementsAre(5 * 3 * 6, 1, 3 * 6, 6));
  EXPECT_EQ(kernel.alignment, 16);
}

TEST(ImageLayout, HasAnElementForEachWindowInTheOutput) {
  EXPECT_THAT(layout_of_output(kShape).extents, ElementsAre(8, 16, 24, 9));
}

}  // namespace
}  // namespace holdfast::compute
