// Small copies must not wait for a snapshot that travels through the same copy engine.

#include "compute/cuda/runtime/staging_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "compute/cuda/runtime/small_copies.h"
#include "support/comes_true.h"
#include "unit/compute/cuda/memory/support/pretended_cuda.h"

namespace holdfast::compute {
namespace {

using Bytes = std::vector<std::byte>;
using std::chrono::milliseconds;

constexpr std::size_t kLarge = kMostSmallBytes + 1;

// The stream that training computes in.
class Ring : public testing::Test {
 protected:
  ~Ring() override { pretended_cuda::device().only_first_stream_runs = false; }

  // A snapshot travels to the host in its own stream, and does not arrive.
  void begin_snapshot() {
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    snapshots_stream_.reset(stream);
    check_cuda(cudaMemcpyAsync(snapshot_.data(), there_.get(), snapshot_.size(), cudaMemcpyDeviceToHost, stream),
               "cudaMemcpyAsync");
    pretended_cuda::device().only_first_stream_runs = true;
  }
  Bytes fetched(std::size_t bytes, Deadline deadline) {
    Bytes fetched(bytes);
    ring_.fetch(there_.get(), fetched, deadline);
    return fetched;
  }

  const pretended_cuda::FreshDevice fresh_;
  CudaContext context_{0};
  StagingRing ring_{context_, context_.stream()};
  const std::shared_ptr<std::byte[]> there_ = context_.allocate(kLarge);
  OwnedStream snapshots_stream_;
  Bytes snapshot_ = Bytes(kLarge);
  const Bytes content_ = [] {
    Bytes content(kLarge);
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i % 251);
    return content;
  }();
};

TEST_F(Ring, FetchesTheFewBytesOfAStepWhileASnapshotTravels) {
  ring_.send(content_, there_.get());
  context_.wait();
  begin_snapshot();

  for (const std::size_t bytes : {std::size_t{4}, std::size_t{13}, kMostSmallBytes}) {
    EXPECT_TRUE(fetched(bytes, Deadline::after(kPatience)) == Bytes(content_.begin(), content_.begin() + bytes))
        << bytes;
  }
}

TEST_F(Ring, LeavesWhatIsLargeToTheEngineThatSnapshotsTake) {
  begin_snapshot();

  EXPECT_THROW(fetched(kLarge, Deadline::after(milliseconds(20))), Error);
}

TEST_F(Ring, SendsWhileASnapshotTravelsTheOtherWay) {
  begin_snapshot();

  ring_.send(content_, there_.get());
  ring_.send(std::span(content_).first(4), there_.get() + 100);

  const Bytes expected(content_.begin(), content_.begin() + 4);
  EXPECT_NO_THROW(context_.wait());
  EXPECT_TRUE(Bytes(there_.get() + 100, there_.get() + 104) == expected);
  EXPECT_EQ(pretended_cuda::device().small_copies, 0) << "no one waits for what is sent";
}

}  // namespace
}  // namespace holdfast::compute
