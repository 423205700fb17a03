#include "compute/convolution_axes.h"

#include <gtest/gtest.h>

namespace holdfast::compute {
namespace {

const ConvolutionShape kImages = {2, 9, 8, 4, 6, 3, 2, 1, 1, Padding::same, true};

TEST(ConvolutionAxes, AreHeightAndWidthForImages) {
  const ConvolutionAxes axes(kImages);

  EXPECT_FALSE(axes.is_volume());
  ASSERT_EQ(axes.needed().size(), 2U);
  EXPECT_EQ(axes.needed()[0].extent, 9);
  EXPECT_EQ(axes.needed()[1].kernel, 2);
  EXPECT_TRUE(is_plain(kImages));
}

TEST(ConvolutionAxes, BeginWithTheDepthForVolumes) {
  ConvolutionShape volumes = kImages;
  volumes.depth = 5;
  volumes.kernel_depth = 3;

  const ConvolutionAxes axes(volumes);

  ASSERT_EQ(axes.needed().size(), 3U);
  EXPECT_EQ(axes.needed()[0].window.count, 5);
  EXPECT_EQ(axes.needed()[0].window.pad_before, 1);
  EXPECT_FALSE(is_plain(volumes));
}

TEST(ConvolutionAxes, SlideWindowsAsLongAsTheirDilationMakesThem) {
  ConvolutionShape dilated = kImages;
  dilated.padding = Padding::valid;
  dilated.dilation_height = 3;

  const ConvolutionAxes axes(dilated);

  EXPECT_EQ(axes.height().window.count, 3);
  EXPECT_FALSE(is_plain(dilated));
}

TEST(ConvolutionAxes, DescribeGroupsAndDilationOnlyIfThereAreAny) {
  ConvolutionShape special = kImages;
  special.groups = 2;
  special.dilation_width = 2;

  EXPECT_EQ(describe_convolution("a pass", kImages),
            "a pass of convolution [2, 9, 8, 4] x [3, 2, 4, 6], strides [1, 1], padding same");
  EXPECT_EQ(
      describe_convolution("a pass", special),
      "a pass of convolution [2, 9, 8, 4] x [3, 2, 2, 6], strides [1, 1], padding same, dilation [1, 2], groups 2");
}

}  // namespace
}  // namespace holdfast::compute
