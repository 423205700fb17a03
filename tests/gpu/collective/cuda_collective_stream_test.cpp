// The collectives' stream on a device: sums with the bits of the host, and their order after training.

#include "collective/nccl/cuda_collective_stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "collective/memory/ordered_add.h"
#include "collective/shard_assignment.h"
#include "gpu/collective/support/device_floats.h"
#include "holdfast/base/deadline.h"
#include "holdfast/core/random.h"

namespace holdfast {
namespace {

class CudaCollectiveStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(status);
    compute::check_cuda(cudaSetDevice(0), "cudaSetDevice");
    compute::check_cuda(cudaStreamCreateWithFlags(&training, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  void TearDown() override {
    if (training != nullptr) cudaStreamDestroy(training);
  }

  static void finish(CudaCollectiveStream& stream) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(30));
    stream.mark();
    while (!stream.has_passed_mark()) {
      ASSERT_FALSE(deadline.has_passed()) << "the stream does not come to its mark";
      std::this_thread::yield();
    }
  }

  cudaStream_t training = nullptr;
};

std::vector<float> drawn(std::size_t floats, std::uint64_t salt) {
  std::vector<float> values(floats);
  Random random(11, Purpose::user, 0, salt);
  for (float& value : values) value = random.normal() * std::exp2(static_cast<float>(random.below(24)));
  return values;
}

// Arrays that are aligned to 16 bytes or not, and whose sizes are multiples of four or not; with as many leaves as each
// kernel takes.
TEST_F(CudaCollectiveStreamTest, GivesTheHostsBits) {
  CudaCollectiveStream stream(0, training);
  for (const int leaves_count : {1, 2, 3, 5, 8, 17, 256}) {
    const ShardAssignment assignment = ShardAssignment::even(leaves_count, leaves_count);
    const std::vector<SumInstruction> program = sum_program(ShardTree(leaves_count), assignment.covering_nodes());
    for (const std::size_t floats : {std::size_t{1}, std::size_t{3}, std::size_t{4096}, std::size_t{100'003}}) {
      for (const std::size_t offset : {std::size_t{0}, std::size_t{1}}) {
        std::vector<std::vector<float>> host;
        std::vector<const float*> host_leaves;
        std::vector<std::shared_ptr<float[]>> device;
        std::vector<const float*> leaves;
        for (int leaf = 0; leaf < leaves_count; ++leaf) {
          host.push_back(drawn(floats, static_cast<std::uint64_t>(leaf)));
          device.push_back(device_floats(floats + offset));
          to_device(host.back(), device.back().get() + offset);
          leaves.push_back(device.back().get() + offset);
        }
        for (const std::vector<float>& leaf : host) host_leaves.push_back(leaf.data());
        std::vector<float> expected(floats);
        add_in_order(program, host_leaves, {0, floats}, expected.data());
        const std::shared_ptr<float[]> sum = device_floats(floats + offset);

        stream.begin_sums();
        stream.add_in_order({.program = program, .leaves = leaves, .floats = floats, .sum = sum.get() + offset});
        finish(stream);

        const std::vector<float> found = to_host(sum.get() + offset, floats);
        EXPECT_EQ(std::memcmp(found.data(), expected.data(), floats * sizeof(float)), 0)
            << leaves_count << " leaves of " << floats << " floats from " << offset;
        EXPECT_TRUE(stream.were_finite());
      }
    }
  }
}

TEST_F(CudaCollectiveStreamTest, FindsWhatIsNotFiniteWhereverItIs) {
  constexpr std::size_t kFloats = 10'003;
  CudaCollectiveStream stream(0, training);
  const std::vector<SumInstruction> program = {SumInstruction::push};
  const std::shared_ptr<float[]> leaf = device_floats(kFloats);
  const float* const leaves[] = {leaf.get()};
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{5000}, kFloats - 1}) {
      std::vector<float> values(kFloats, 1.0F);
      for (const bool is_wrong : {true, false}) {
        values[place] = is_wrong ? wrong : 1.0F;
        to_device(values, leaf.get());

        stream.begin_sums();
        stream.add_in_order({.program = program, .leaves = leaves, .floats = kFloats, .sum = nullptr});
        finish(stream);

        EXPECT_EQ(stream.were_finite(), !is_wrong) << wrong << " at " << place;
      }
    }
  }
}

TEST_F(CudaCollectiveStreamTest, BeginsWhenTrainingIsDone) {
  constexpr std::size_t kFloats = std::size_t{16} * 1024 * 1024;
  CudaCollectiveStream stream(0, training);
  const std::shared_ptr<float[]> leaf = device_floats(kFloats);
  const std::shared_ptr<float[]> sum = device_floats(kFloats);
  const std::vector<SumInstruction> program = {SumInstruction::push};
  const float* const leaves[] = {leaf.get()};

  for (int pass = 0; pass < 50; ++pass) {
    compute::check_cuda(cudaMemsetAsync(leaf.get(), pass, kFloats * sizeof(float), training), "cudaMemsetAsync");
  }
  stream.follow_training();
  stream.add_in_order({.program = program, .leaves = leaves, .floats = kFloats, .sum = sum.get()});
  finish(stream);

  const std::vector<float> found = to_host(sum.get(), kFloats);
  std::vector<float> expected(kFloats);
  std::memset(expected.data(), 49, kFloats * sizeof(float));
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), kFloats * sizeof(float)), 0);
}

}  // namespace
}  // namespace holdfast
