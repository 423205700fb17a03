// Held arrays on a pretended CUDA runtime, in which queued work happens only when it is waited for.

#include "compute/cuda/runtime/array_holder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <numeric>

#include "compute/cuda/runtime/cuda_memory_space.h"
#include "support/comes_true.h"
#include "unit/compute/cuda/memory/support/pretended_cuda.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;
using std::chrono::milliseconds;

Floats numbers(std::size_t count, float first) {
  Floats numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Three arrays, two of which are neighbours in one allocation, like those of a model.
class HeldOnADevice : public testing::Test {
 protected:
  HeldOnADevice() {
    for (std::size_t i = 0; i < arrays_.size(); ++i) space_->copy_from_host(contents_[i], arrays_[i]);
    space_->wait();
  }
  ~HeldOnADevice() override {
    // Otherwise freeing memory would wait.
    pretended_cuda::device().hangs = false;
    pretended_cuda::device().only_first_stream_runs = false;
  }

  std::unique_ptr<HeldArrays> hold() {
    return space_->hold(std::vector<std::span<const float>>(arrays_.begin(), arrays_.end()));
  }
  std::vector<std::span<float>> targets() {
    return {std::span(target_).first(10), std::span(target_).subspan(10, 20), std::span(target_).subspan(30)};
  }
  // Training changes the arrays after they were held.
  void change() {
    for (const std::span<float> array : arrays_) space_->fill_zero(array);
    space_->wait();
  }
  Floats all_contents() const {
    Floats all;
    for (const Floats& content : contents_) all.insert(all.end(), content.begin(), content.end());
    return all;
  }

  const pretended_cuda::FreshDevice fresh_;
  const std::shared_ptr<CudaMemorySpace> space_ = std::make_shared<CudaMemorySpace>(0);
  const std::shared_ptr<float[]> arena_ = space_->allocate(48), large_ = space_->allocate((1 << 20) + 5);
  std::vector<std::span<float>> arrays_ = {{arena_.get(), 10}, {arena_.get() + 16, 20}, {large_.get(), (1 << 20) + 5}};
  const std::vector<Floats> contents_ = {numbers(10, 1), numbers(20, 100), numbers((1 << 20) + 5, 1000)};
  Floats target_ = Floats(10 + 20 + (1 << 20) + 5);
};

TEST_F(HeldOnADevice, ArraysArriveAsTheyWereWhileTrainingChangesThem) {
  pretended_cuda::device().only_first_stream_runs = true;

  const std::unique_ptr<HeldArrays> held = hold();
  held->begin_copy(targets());
  change();
  pretended_cuda::device().only_first_stream_runs = false;
  held->finish_copy();

  EXPECT_EQ(held->obstacle(), "");
  EXPECT_TRUE(target_ == all_contents());
}

TEST_F(HeldOnADevice, TheirMemoryIsFreedWhenTrainingNeedsIt) {
  pretended_cuda::Device& device = pretended_cuda::device();
  std::unique_ptr<HeldArrays> held = hold();
  held->begin_copy(targets());
  held->finish_copy();
  const std::size_t floats = (1 << 20) + (1 << 18);
  device.total_bytes = device.used_bytes + (1 << 20);

  EXPECT_THROW(space_->allocate(floats), Error) << "somebody may still ask for the digest";
  held.reset();
  const std::shared_ptr<float[]> needed = space_->allocate(floats);

  EXPECT_NE(needed, nullptr);
  held = hold();
  EXPECT_THAT(held->obstacle(), testing::HasSubstr("training needed"));
  target_.assign(target_.size(), 0.0F);
  held->begin_copy(targets());
  held->finish_copy();
  EXPECT_TRUE(target_ == all_contents());
}

// The thread that frees the memory waits for the device; other threads do not.
TEST_F(HeldOnADevice, TheirMemoryIsFreedWhileOtherThreadsQueueWork) {
  pretended_cuda::Device& device = pretended_cuda::device();
  static_cast<void>(hold()->digest());
  const std::size_t floats = (1 << 20) + (1 << 18);
  device.total_bytes = device.used_bytes + (1 << 20);
  space_->set_time_limit(std::chrono::seconds(5));
  device.hangs = true;
  space_->fill_zero(arrays_[0]);
  std::future<std::shared_ptr<float[]>> needed =
      std::async(std::launch::async, [&] { return space_->allocate(floats); });
  ASSERT_TRUE(comes_true([] { return pretended_cuda::looks_in_vain() > 0; }));

  {
    const CudaContext::StreamLock lock = space_->context().lock_stream();
    device.hangs = false;
  }

  EXPECT_NE(needed.get(), nullptr);
  EXPECT_FALSE(space_->context().lost_device().is_set());
}

TEST_F(HeldOnADevice, ArraysHaveTheDigestOfWhatTheyWere) {
  const Floats all = all_contents();
  const std::span<const float> expected(all);

  const std::unique_ptr<HeldArrays> held = hold();
  change();

  EXPECT_EQ(held->digest(), host_memory().digest_of(std::span(&expected, 1)));
  EXPECT_EQ(held->digest(), host_memory().digest_of(std::span(&expected, 1)));
}

TEST_F(HeldOnADevice, ArraysGoStraightToRegisteredMemory) {
  space_->pin(std::as_writable_bytes(std::span(target_)));
  pretended_cuda::device().staged_copies = 0;

  const std::unique_ptr<HeldArrays> held = hold();
  held->begin_copy(targets());
  held->finish_copy();

  EXPECT_TRUE(target_ == all_contents());
  EXPECT_EQ(pretended_cuda::device().direct_copies, 3);
  EXPECT_EQ(pretended_cuda::device().staged_copies, 0);
  space_->unpin(std::as_writable_bytes(std::span(target_)));
}

TEST_F(HeldOnADevice, NeighboursAreCopiedInOneGo) {
  hold();

  EXPECT_EQ(pretended_cuda::device().inner_copies, 2) << "many small copies take longer than one";
}

TEST_F(HeldOnADevice, ArraysOfAnotherTimeWaitForTheCopyOfTheFirst) {
  const std::unique_ptr<HeldArrays> first = hold();
  first->begin_copy(targets());
  change();

  const std::unique_ptr<HeldArrays> second = hold();
  first->finish_copy();
  EXPECT_TRUE(target_ == all_contents());
  second->begin_copy(targets());
  second->finish_copy();

  EXPECT_TRUE(target_ == Floats(target_.size()));
}

TEST_F(HeldOnADevice, ArraysMayBeDroppedWithoutACopy) {
  hold();
  change();

  const std::unique_ptr<HeldArrays> held = hold();
  held->begin_copy(targets());
  held->finish_copy();

  EXPECT_TRUE(target_ == Floats(target_.size()));
}

TEST_F(HeldOnADevice, MemoryForTheSecondCopyIsAllocatedOnce) {
  hold();
  const std::size_t used = pretended_cuda::device().used_bytes;

  for (int i = 0; i < 3; ++i) hold();

  EXPECT_EQ(pretended_cuda::device().used_bytes, used);
}

// A sixteenth of the memory stays free for training.
TEST_F(HeldOnADevice, ArraysAreCopiedAtOnceWhereThereIsNoRoom) {
  const std::size_t free_bytes = std::size_t{68} << 20;
  pretended_cuda::device().used_bytes = pretended_cuda::device().total_bytes - free_bytes;
  const Floats all = all_contents();
  const std::span<const float> expected(all);

  const std::unique_ptr<HeldArrays> held = hold();
  held->begin_copy(targets());
  change();
  held->finish_copy();

  EXPECT_TRUE(target_ == all);
  EXPECT_EQ(held->digest(), host_memory().digest_of(std::span(&expected, 1)));
  EXPECT_EQ(held->obstacle(),
            "cuda:0 has 68.0 MiB of its 1.0 GiB free, too little for a second copy of 4.0 MiB with 64.0 MiB to spare");
}

TEST_F(HeldOnADevice, ArraysOfADeviceThatHangsAreWaitedForByADeadline) {
  space_->set_time_limit(milliseconds(20));

  const std::unique_ptr<HeldArrays> held = hold();
  pretended_cuda::device().hangs = true;
  held->begin_copy(targets());

  try {
    held->finish_copy();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
    EXPECT_THAT(error.what(), testing::HasSubstr("cuda:0"));
  }
  EXPECT_TRUE(space_->context().lost_device().is_set());
}

}  // namespace
}  // namespace holdfast::compute
