#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "holdfast/train/trainable.h"

namespace holdfast {
namespace {

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

class GradientSinkTest : public testing::Test {
 protected:
  std::vector<float> gradients_ = std::vector<float>(10);
  Ranges told_;
  GradientSink sink_{gradients_,
                     {.on_ready = [this](std::size_t begin, std::size_t end) { told_.emplace_back(begin, end); }}};
};

TEST_F(GradientSinkTest, ReportsARangeAsSoonAsItIsReady) {
  sink_.ready(4, 10);
  EXPECT_EQ(told_, (Ranges{{4, 10}}));
  sink_.ready(0, 4);

  EXPECT_EQ(told_, (Ranges{{4, 10}, {0, 4}}));
  EXPECT_EQ(sink_.ready_count(), 10U);
}

TEST_F(GradientSinkTest, RefusesInvalidRanges) {
  for (const auto& [begin, end] : Ranges{{5, 4}, {0, 11}, {11, 12}}) {
    EXPECT_THROW(sink_.ready(begin, end), Error) << begin << " to " << end;
    EXPECT_EQ(told_, Ranges());
    EXPECT_EQ(sink_.ready_count(), 0U);
  }
}

TEST_F(GradientSinkTest, RefusesMoreFloatsThanThereAre) {
  sink_.ready(0, 10);

  EXPECT_THROW(sink_.ready(3, 4), Error);
  EXPECT_EQ(told_, (Ranges{{0, 10}}));
}

// A model without statistics declares such a range, for example. No rank waits for it.
TEST_F(GradientSinkTest, DoesNotReportEmptyRanges) {
  sink_.ready(10, 10);
  sink_.ready(0, 10);
  sink_.ready(10, 10);

  EXPECT_EQ(told_, (Ranges{{0, 10}}));
  EXPECT_EQ(sink_.ready_count(), 10U);
}

}  // namespace
}  // namespace holdfast
