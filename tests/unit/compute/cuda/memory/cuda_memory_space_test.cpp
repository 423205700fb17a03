// The CUDA memory space on a pretended runtime. Its devices can hang, fail, run out of memory and refuse to pin memory.

#include "compute/cuda/runtime/cuda_memory_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <limits>
#include <numeric>
#include <string>

#include "holdfast/base/log.h"
#include "support/comes_true.h"
#include "unit/compute/cuda/memory/support/pretended_cuda.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;
using std::chrono::milliseconds;

// Sizes below, at and above that of a staging buffer, and more than the whole ring holds.
const std::vector<std::size_t> kSizes = {1, 1000, 1 << 20, (1 << 20) + 1, (5 << 20) + 7};

Floats numbers(std::size_t count) {
  Floats numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1.0F);
  return numbers;
}

class CudaMemory : public testing::Test {
 protected:
  CudaMemory() { pretended_cuda::reset(); }
  ~CudaMemory() override {
    // Otherwise freeing memory would wait.
    pretended_cuda::device().hangs = false;
    pretended_cuda::device().failure = cudaSuccess;
  }

  std::span<float> array(std::size_t floats) {
    arrays_.push_back(space_->allocate(floats));
    return {arrays_.back().get(), floats};
  }
  Floats content_of(std::span<const float> array) {
    Floats content(array.size());
    space_->copy_to_host(array, content);
    return content;
  }

  std::shared_ptr<CudaMemorySpace> space_ = CudaMemorySpace::of_device(0);
  std::vector<std::shared_ptr<float[]>> arrays_;
};

TEST_F(CudaMemory, HoldsZerosAtFirst) {
  EXPECT_EQ(content_of(array(1000)), Floats(1000));
}

TEST_F(CudaMemory, ReadsBackThroughTheRingWhatWasWritten) {
  for (const std::size_t size : kSizes) {
    const Floats content = numbers(size);
    const std::span<float> there = array(size);

    space_->copy_from_host(content, there);

    EXPECT_TRUE(content_of(there) == content) << size;
  }
  EXPECT_EQ(pretended_cuda::device().direct_copies, 0);
}

TEST_F(CudaMemory, CopiesFromMemoryThatChangesAtOnce) {
  for (const std::size_t size : kSizes) {
    Floats changing = numbers(size);
    const std::span<float> there = array(size);

    space_->copy_from_host(changing, there);
    std::fill(changing.begin(), changing.end(), 0.0F);

    EXPECT_TRUE(content_of(there) == numbers(size)) << size;
  }
}

TEST_F(CudaMemory, GathersRowsByNumbersThatMayChangeAtOnce) {
  const std::span<float> from = array(6);
  const std::span<float> to = array(8);
  space_->copy_from_host(Floats{0, 1, 10, 11, 20, 21}, from);
  std::vector<std::int64_t> rows = {2, 0, 0, 1};

  space_->gather(from, rows, to);
  rows.assign(rows.size(), 1);
  EXPECT_EQ(content_of(to), (Floats{20, 21, 0, 1, 0, 1, 10, 11}));

  // More rows than ever before.
  space_->gather(from, std::vector<std::int64_t>{1, 2, 0, 1, 2, 2, 1, 0}, to);
  EXPECT_EQ(content_of(to), (Floats{1, 10, 0, 1, 10, 10, 1, 0}));
}

TEST_F(CudaMemory, CopiesRegisteredMemoryDirectly) {
  Floats pinned = numbers(5000);
  const std::span<float> there = array(5000);
  space_->pin(std::as_writable_bytes(std::span(pinned)));

  space_->copy_from_host(pinned, there);
  std::fill(pinned.begin(), pinned.end(), 0.0F);
  space_->copy_to_host(there, pinned);

  EXPECT_TRUE(pinned == numbers(5000));
  EXPECT_EQ(pretended_cuda::device().direct_copies, 2);
  EXPECT_EQ(pretended_cuda::device().staged_copies, 0);
  space_->unpin(std::as_writable_bytes(std::span(pinned)));
  EXPECT_TRUE(content_of(there) == numbers(5000));
  EXPECT_EQ(pretended_cuda::device().direct_copies, 2);
}

TEST_F(CudaMemory, TakesTheRingWhereMemoryCannotBeRegistered) {
  pretended_cuda::device().refuses_to_register = true;
  Floats content = numbers(100);
  const std::span<float> there = array(100);
  std::string said;
  set_log_sink([&](LogLevel, std::string_view line) { said += line; });

  space_->pin(std::as_writable_bytes(std::span(content)));
  set_log_sink({});
  space_->copy_from_host(content, there);
  space_->unpin(std::as_writable_bytes(std::span(content)));

  EXPECT_TRUE(content_of(there) == content);
  EXPECT_THAT(said, testing::HasSubstr("400 bytes of the host's memory cannot be pinned for cuda:0"));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a later check would take the refusal for its own";
}

TEST_F(CudaMemory, DoesInOrderWhatItIsAskedFor) {
  const std::span<float> a = array(3), b = array(3);
  space_->copy_from_host(Floats{1, 2, 3}, a);
  space_->copy_from_host(Floats{10, 20, 30}, b);

  space_->add(a, b);
  space_->copy(b, a);
  space_->fill_zero(b);

  EXPECT_EQ(content_of(a), (Floats{11, 22, 33}));
  EXPECT_EQ(content_of(b), Floats(3));
}

TEST_F(CudaMemory, DigestsWhatWasQueuedBefore) {
  const std::span<float> a = array(3);
  const Floats content = {1, 2, 3};
  space_->copy_from_host(content, a);
  const std::vector<std::span<const float>> on_device = {a}, on_host = {content};

  EXPECT_EQ(space_->digest_of(on_device), host_memory().digest_of(on_host));
}

TEST_F(CudaMemory, FindsWhatIsNotFinite) {
  const std::span<float> a = array(3);
  space_->copy_from_host(Floats{1, std::numeric_limits<float>::infinity(), 3}, a);
  EXPECT_FALSE(space_->is_finite(a));

  space_->copy_from_host(Floats{1, 2, 3}, a);

  EXPECT_TRUE(space_->is_finite(a));
}

TEST_F(CudaMemory, ThrowsAtTheDeadlineWhereTheDeviceHangs) {
  const std::span<float> a = array(3);
  space_->wait();
  space_->set_time_limit(milliseconds(20));
  pretended_cuda::device().hangs = true;

  try {
    content_of(a);
    FAIL() << "waited for a device that hangs";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
    EXPECT_THAT(error.what(), testing::HasSubstr("cuda:0"));
    EXPECT_THAT(error.what(), testing::HasSubstr("did not end within its time limit"));
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "not being ready is not a failure";
}

// Otherwise every array would wait for the device again, each up to the time limit.
TEST_F(CudaMemory, WaitsOnceForADeviceThatHangs) {
  const std::span<float> a = array(3);
  space_->wait();
  space_->set_time_limit(milliseconds(20));
  pretended_cuda::device().hangs = true;
  EXPECT_THROW(content_of(a), Error);
  space_->set_time_limit(std::chrono::hours(24));

  for (const auto& action : std::vector<std::function<void()>>{[&] { space_->wait(); }, [&] { content_of(a); }}) {
    try {
      action();
      ADD_FAILURE() << "waited for a device that hangs";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device_failed);
      EXPECT_THAT(error.what(), testing::HasSubstr("is lost, because"));
    }
  }
}

TEST_F(CudaMemory, ThrowsWhatWentWrongOnTheDeviceBefore) {
  const std::span<float> a = array(3);
  pretended_cuda::device().failure = cudaErrorIllegalAddress;

  try {
    content_of(a);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_failed);
    EXPECT_THAT(error.what(), testing::HasSubstr("cudaErrorIllegalAddress"));
    EXPECT_THAT(error.what(), testing::HasSubstr("which must be replaced"));
  }
}

TEST_F(CudaMemory, GivesMemoryBackOnceWhatUsesItIsDone) {
  array(1000);
  const std::size_t used = pretended_cuda::device().used_bytes;

  arrays_.clear();

  EXPECT_EQ(pretended_cuda::device().used_bytes, used - 4000);
  EXPECT_FALSE(pretended_cuda::device().freed_too_early);
}

// Freeing memory would wait for the device without a deadline.
TEST_F(CudaMemory, LeavesMemoryToTheEndOfAProcessWhoseDeviceHangs) {
  const std::span<float> a = array(1000);
  content_of(a);
  space_->digest_of(std::vector<std::span<const float>>{a});
  std::vector<std::byte> registered(4096);
  space_->pin(registered);
  const std::size_t used = pretended_cuda::device().used_bytes;
  space_->set_time_limit(milliseconds(20));
  space_->fill_zero(a);
  pretended_cuda::device().hangs = true;

  arrays_.clear();
  space_->unpin(registered);
  space_.reset();

  EXPECT_EQ(pretended_cuda::device().used_bytes, used);
  EXPECT_FALSE(pretended_cuda::device().would_wait_for_ever);
}

// Training's stream may be empty while a collective's is not.
TEST_F(CudaMemory, IsLeftToTheEndOfTheProcessIfAnotherUserLostTheDevice) {
  array(1000);
  const std::size_t used = pretended_cuda::device().used_bytes;

  space_->context().lost_device().set();
  arrays_.clear();

  EXPECT_EQ(pretended_cuda::device().used_bytes, used);
}

TEST_F(CudaMemory, SaysHowMuchIsMissing) {
  pretended_cuda::device().total_bytes = pretended_cuda::device().used_bytes + (std::size_t{1} << 20);

  try {
    array(1 << 20);
    FAIL() << "there was enough";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_THAT(error.what(), testing::StartsWith("allocating 4.0 MiB on cuda:0 (Pretended) failed"));
    EXPECT_THAT(error.what(), testing::HasSubstr("3.0 MiB are missing"));
  }
  EXPECT_EQ(content_of(array(10)), Floats(10));
}

// If both shared an event, recording it again would make the first wait for the work of the second.
TEST_F(CudaMemory, IsWaitedForByEachThreadOnItsOwn) {
  space_->fill_zero(array(10));
  pretended_cuda::device().hangs = true;
  std::future<void> first = std::async(std::launch::async, [&] { space_->wait(); });
  ASSERT_TRUE(comes_true([] { return pretended_cuda::looks_in_vain() > 0; }));

  space_->set_time_limit(milliseconds(20));
  EXPECT_THROW(space_->wait(), Error);

  EXPECT_FALSE(pretended_cuda::device().moved_awaited_event);
  EXPECT_THROW(first.get(), Error) << "the device was given up";
}

TEST_F(CudaMemory, IsSharedByAllUsersOfADevice) {
  EXPECT_EQ(CudaMemorySpace::of_device(0), space_);
  EXPECT_THROW(CudaMemorySpace::of_device(1), Error);
}

// Two trainers of a process that read the same data set do this.
TEST_F(CudaMemory, StaysRegisteredUntilItsLastOwnerUnpinsIt) {
  Floats samples = numbers(4096);
  const auto bytes = std::as_writable_bytes(std::span(samples));
  space_->pin(bytes);
  space_->pin(bytes);

  space_->unpin(bytes);
  EXPECT_NE(space_->feed(samples, 16), nullptr);

  space_->unpin(bytes);
  EXPECT_EQ(space_->feed(samples, 16), nullptr);
}

TEST_F(CudaMemory, HasAWorkspaceThatKeepsWhatItOutgrows) {
  CudaContext& context = space_->context();
  const std::size_t used = pretended_cuda::device().used_bytes;

  context.reserve_workspace(1000);
  std::byte* const first = context.workspace();
  context.reserve_workspace(500);
  EXPECT_EQ(context.workspace(), first);
  context.reserve_workspace(1001);

  EXPECT_NE(context.workspace(), first);
  EXPECT_EQ(context.workspace_bytes(), 2000U);
  EXPECT_EQ(pretended_cuda::device().used_bytes, used + 3000) << "captured graphs may still name the first";
}

TEST_F(CudaMemory, MakesAWorkspaceNoLargerThanNeededWhereThereIsNoRoomForMore) {
  CudaContext& context = space_->context();
  context.reserve_workspace(1000);
  pretended_cuda::device().total_bytes = pretended_cuda::device().used_bytes + 1500;

  context.reserve_workspace(1001);

  EXPECT_EQ(context.workspace_bytes(), 1001U);
  EXPECT_THROW(context.reserve_workspace(2000), Error);
  EXPECT_EQ(context.workspace_bytes(), 1001U);
}

TEST_F(CudaMemory, DescribesWhatBitsDependOn) {
  EXPECT_EQ(space_->context().description(),
            "cuBLASLt 13.1.0, cuDNN 9.19.0, Pretended (compute capability 9.0, 132 multiprocessors)");
}

}  // namespace
}  // namespace holdfast::compute
