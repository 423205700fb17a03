#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "holdfast/train/trainable.h"

namespace holdfast {
namespace {

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

TEST(GradientSink, TellsWhatIsReadyWhenItIs) {
  std::vector<float> gradients(10);
  Ranges told;
  GradientSink sink(gradients,
                    {.on_ready = [&](std::size_t begin, std::size_t end) { told.emplace_back(begin, end); }});

  sink.ready(4, 10);
  sink.ready(0, 4);

  EXPECT_EQ(told, (Ranges{{4, 10}, {0, 4}}));
  EXPECT_EQ(sink.ready_count(), 10U);
}

TEST(GradientSink, RefusesRangesThatAreNone) {
  std::vector<float> gradients(10);
  for (const auto& [begin, end] : Ranges{{5, 4}, {0, 11}, {11, 12}}) {
    int told = 0;
    GradientSink sink(gradients, {.on_ready = [&](std::size_t, std::size_t) { ++told; }});

    EXPECT_THROW(sink.ready(begin, end), Error) << begin << " to " << end;
    EXPECT_EQ(told, 0);
    EXPECT_EQ(sink.ready_count(), 0U);
  }
}

TEST(GradientSink, RefusesMoreThanThereIs) {
  std::vector<float> gradients(10);
  Ranges told;
  GradientSink sink(gradients,
                    {.on_ready = [&](std::size_t begin, std::size_t end) { told.emplace_back(begin, end); }});
  sink.ready(0, 10);

  EXPECT_THROW(sink.ready(3, 4), Error);
  EXPECT_EQ(told, (Ranges{{0, 10}}));
}

// Of a model without statistics, for one. Nobody waits for nothing.
TEST(GradientSink, TellsNothingOfEmptyRanges) {
  std::vector<float> gradients(10);
  Ranges told;
  GradientSink sink(gradients,
                    {.on_ready = [&](std::size_t begin, std::size_t end) { told.emplace_back(begin, end); }});

  sink.ready(10, 10);
  sink.ready(0, 10);
  sink.ready(10, 10);

  EXPECT_EQ(told, (Ranges{{0, 10}}));
  EXPECT_EQ(sink.ready_count(), 10U);
}

}  // namespace
}  // namespace holdfast
