#include "compute/arithmetic/sliding_axis.h"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::compute {
namespace {

struct SlidingCase {
  std::int64_t extent, size, stride;
  Padding padding;
};

class SlidingAxes : public testing::TestWithParam<SlidingCase> {};

TEST_P(SlidingAxes, AWindowCoversAnElementThatIsCoveredByIt) {
  const SlidingCase& c = GetParam();
  const SlidingAxis axis = sliding_axis(c.extent, c.size, c.stride, c.padding);

  for (std::int32_t window = 0; window < axis.count; ++window) {
    const IndexRange elements = axis.elements_of(window);
    EXPECT_LT(elements.begin, elements.end) << "window " << window;
    for (std::int32_t element = 0; element < axis.extent; ++element) {
      const IndexRange windows = axis.windows_over(element);
      EXPECT_EQ(elements.begin <= element && element < elements.end, windows.begin <= window && window < windows.end)
          << "window " << window << ", element " << element;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SlidingAxes,
                         testing::Values(SlidingCase{5, 3, 1, Padding::same}, SlidingCase{6, 3, 2, Padding::same},
                                         SlidingCase{5, 2, 2, Padding::valid}, SlidingCase{7, 5, 1, Padding::valid},
                                         SlidingCase{8, 1, 3, Padding::same}, SlidingCase{28, 5, 1, Padding::same},
                                         SlidingCase{3, 3, 1, Padding::same}, SlidingCase{2, 5, 1, Padding::same},
                                         SlidingCase{9, 2, 3, Padding::valid}, SlidingCase{1, 1, 1, Padding::valid}));

// begin + size would not fit into 32 bits.
TEST(SlidingAxis, TakesTheLargestWindowThatAnAxisMayHave) {
  const SlidingAxis axis = sliding_axis(0x7FFFFFFF, 0x7FFFFFFF, 1, Padding::valid);

  const IndexRange elements = axis.elements_of(0);

  EXPECT_EQ(elements.begin, 0);
  EXPECT_EQ(elements.end, 0x7FFFFFFF);
}

}  // namespace
}  // namespace holdfast::compute
