// Rows of samples on a pretended runtime: a buffer must not be filled while queued work still reads it.

#include "compute/cuda/runtime/cuda_row_feed.h"

#include <gtest/gtest.h>

#include <numeric>

#include "compute/cuda/runtime/cuda_memory_space.h"
#include "unit/compute/cuda/memory/support/pretended_cuda.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;
using Rows = std::vector<std::int64_t>;

constexpr std::size_t kRowFloats = 3;

class CudaRowFeeds : public testing::Test {
 protected:
  CudaRowFeeds() {
    std::iota(samples_.begin(), samples_.end(), 0.0F);
    space_->pin(std::as_writable_bytes(std::span(samples_)));
  }

  std::unique_ptr<RowFeed> feed() { return space_->feed(samples_, kRowFloats); }
  static Floats values_of(const Rows& rows) {
    Floats values;
    for (const std::int64_t row : rows) {
      for (std::size_t i = 0; i < kRowFloats; ++i) {
        values.push_back(static_cast<float>(static_cast<std::size_t>(row) * kRowFloats + i));
      }
    }
    return values;
  }
  Floats content_of(std::span<const float> array) {
    Floats content(array.size());
    space_->copy_to_host(array, content);
    return content;
  }
  // More runs than are copied one by one.
  static Rows scattered(std::int64_t first) {
    Rows rows;
    for (std::int64_t row = 0; row < 200; ++row) rows.push_back((first + 7 * row) % 1000);
    return rows;
  }

  const pretended_cuda::FreshDevice fresh_;
  Floats samples_ = Floats(1000 * kRowFloats);
  const std::shared_ptr<CudaMemorySpace> space_ = CudaMemorySpace::of_device(0);
};

TEST_F(CudaRowFeeds, GiveTheRowsThatWereBegunInTurn) {
  const auto feed = this->feed();
  ASSERT_NE(feed, nullptr);

  feed->begin(Rows{5, 6, 7, 2});
  for (std::int64_t step = 0; step < 5; ++step) {
    const std::span<const float> taken = feed->take();
    feed->begin(Rows{step, step, 900});
    EXPECT_EQ(content_of(taken), step == 0 ? values_of({5, 6, 7, 2}) : values_of({step - 1, step - 1, 900}));
  }
}

TEST_F(CudaRowFeeds, LetTheDeviceReadRowsThatAreScattered) {
  const auto feed = this->feed();
  Rows changing = scattered(1);

  feed->begin(changing);
  changing.assign(changing.size(), 0);
  const std::span<const float> first = feed->take();
  feed->begin(scattered(500));

  EXPECT_EQ(content_of(first), values_of(scattered(1)));
  EXPECT_EQ(content_of(feed->take()), values_of(scattered(500)));
}

TEST_F(CudaRowFeeds, CopyRowsThatFollowEachOtherInOneGo) {
  const auto feed = this->feed();
  Rows rows(300);
  std::iota(rows.begin(), rows.end(), 100);
  const int before = pretended_cuda::device().direct_copies;

  feed->begin(rows);

  EXPECT_EQ(pretended_cuda::device().direct_copies, before + 1);
  EXPECT_EQ(content_of(feed->take()), values_of(rows));
}

TEST_F(CudaRowFeeds, WaitForWhatReadsAPlace) {
  auto feed = this->feed();
  const std::shared_ptr<float[]> copy = space_->allocate(2 * kRowFloats);
  feed->begin(Rows{1, 2});
  space_->copy(feed->take(), {copy.get(), 2 * kRowFloats});
  feed->begin(Rows{3, 4});
  static_cast<void>(feed->take());

  // Fills the first buffer again. The feed's end waits for its own stream first, in which the copy is still queued.
  feed->begin(Rows{5, 6});
  feed.reset();

  EXPECT_EQ(content_of({copy.get(), 2 * kRowFloats}), values_of({1, 2}));
}

TEST_F(CudaRowFeeds, MayHaveNoRows) {
  const auto feed = this->feed();

  feed->begin(Rows{});

  EXPECT_TRUE(feed->take().empty());
}

TEST_F(CudaRowFeeds, NeedMemoryThatIsPinned) {
  const Floats other(6);

  EXPECT_EQ(space_->feed(other, 3), nullptr);
}

}  // namespace
}  // namespace holdfast::compute
