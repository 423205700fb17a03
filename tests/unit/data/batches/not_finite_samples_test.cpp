// Which sample of a batch is named when a step was not finite.

#include "data/batches/not_finite_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "holdfast/core/memory_space.h"
#include "holdfast/data/dataset.h"

namespace holdfast {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// In a batch of `data` that is cut into two shards, of which a replica has those from `first` on.
std::string found_in(const Dataset& data, std::int64_t batch, int first = 0) {
  const LoadedShards loaded(data, 3, 2, first, 2, 0, batch);
  return sample_not_finite(loaded.batch(), data, 3, host_memory());
}

// Eight samples of two numbers, all 1.
Tensor ones() {
  return Tensor(Shape{8, 2}, std::vector<float>(16, 1.0F));
}

TEST(SampleNotFinite, IsTheFirstOneThatThisReplicaHas) {
  Tensor x = ones();
  x.sample(4)[1] = -kInfinity;
  x.sample(6)[0] = std::nanf("");
  const Dataset data = from_tensors(x, ones()).batch(4);

  EXPECT_EQ(found_in(data, 0), "");
  EXPECT_EQ(found_in(data, 1), "sample 4 of the data set has -inf in its input");
  EXPECT_EQ(found_in(data, 1, 1), "sample 6 of the data set has nan in its input");
}

TEST(SampleNotFinite, IsNamedByItsNumberInTheDataSetWhateverTheOrder) {
  Tensor x = ones();
  x.sample(5)[0] = std::nanf("");
  const Dataset data = from_tensors(x, ones()).shuffle().batch(8);

  EXPECT_EQ(found_in(data, 0), "sample 5 of the data set has nan in its input");
}

TEST(SampleNotFinite, IsFoundThroughTheMemoryInWhichTheBatchLies) {
  Tensor y = ones();
  y.sample(6)[1] = std::nanf("");
  const Dataset data = from_tensors(ones(), y).batch(8);
  const LoadedShards loaded(data, 3, 2, 0, 2, 0, 0);
  Batch batch = loaded.batch();
  batch.is_on_device = true;

  EXPECT_EQ(sample_not_finite(batch, data, 3, host_memory()), "sample 6 of the data set has nan in its target");
}

TEST(SampleNotFinite, HasATargetThatIsNotFinite) {
  Tensor y = ones();
  y.sample(2)[0] = kInfinity;

  EXPECT_EQ(found_in(from_tensors(ones(), y).batch(8), 0), "sample 2 of the data set has inf in its target");
}

// The bits of an integer may be those of a NaN.
TEST(SampleNotFinite, HasItInAnArrayOfFloatsThatIsNamed) {
  const Tensor ids(Shape{8}, std::vector<std::int32_t>(8, -1));
  Tensor age = ones();
  Tensor bf16(Shape{8, 3}, DType::bf16);
  const Dataset finite = from_tensors({{"ids", ids}, {"age", age}, {"half", bf16}}, {{"y", ones()}}).batch(8);
  bf16.bytes()[2 * (3 * 7 + 2) + 1] = std::byte{0x7F};
  bf16.bytes()[2 * (3 * 7 + 2)] = std::byte{0x80};
  const Dataset infinite = from_tensors({{"ids", ids}, {"age", age}, {"half", bf16}}, {{"y", ones()}}).batch(8);
  age.sample(3)[1] = std::nanf("");
  const Dataset nan = from_tensors({{"ids", ids}, {"age", age}, {"half", bf16}}, {{"y", ones()}}).batch(8);

  EXPECT_EQ(found_in(finite, 0), "");
  EXPECT_EQ(found_in(infinite, 0), "sample 7 of the data set has inf in its input \"half\"");
  EXPECT_EQ(found_in(nan, 0), "sample 3 of the data set has nan in its input \"age\"");
}

}  // namespace
}  // namespace holdfast
