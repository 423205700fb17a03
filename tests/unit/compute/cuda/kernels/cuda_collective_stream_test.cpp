#include "collective/nccl/cuda_collective_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast {
namespace {

// A callback of the application may leave another device current, where this stream's calls fail.
TEST(CollectiveStream, QueuesOnItsDeviceWhicheverIsTheThreadsCurrentOne) {
  CudaCollectiveStream stream(0, nullptr);
  const std::vector<SumInstruction> program = {SumInstruction::push, SumInstruction::push, SumInstruction::add};
  const std::vector<float> first = {1, 2, 3}, second = {10, 20, 30};
  const float* const leaves[] = {first.data(), second.data()};
  std::vector<float> sum(3);
  const auto switch_device = [] { cudaSetDevice(1); };

  switch_device();
  stream.follow_training();
  switch_device();
  stream.mark_training(0);
  switch_device();
  stream.follow_training(0);
  switch_device();
  EXPECT_TRUE(stream.has_training_passed());
  stream.begin_sums();
  switch_device();
  stream.add_in_order({.program = program, .leaves = leaves, .floats = 3, .sum = sum.data()});
  switch_device();
  stream.mark();
  switch_device();
  EXPECT_TRUE(stream.has_passed_mark());

  EXPECT_EQ(sum, (std::vector<float>{11, 22, 33}));
  EXPECT_TRUE(stream.were_finite());
  cudaSetDevice(0);
}

}  // namespace
}  // namespace holdfast
