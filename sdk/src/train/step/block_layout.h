#pragma once

// The layout of what one shard writes and all shards together sum. First come the gradients, padded to a cache line.
// Then comes a tail, which is always in the host's memory. It holds the shard's sums (loss and metrics), the weights of
// its samples, the requests of its rank, and the comparison of a gradient check.

#include <algorithm>
#include <cstddef>
#include <span>

#include "train/context/requests.h"
#include "train/step/gradient_check.h"

namespace holdfast {

class BlockLayout {
 public:
  // There is room for `most_gradients`, if that is more; the rest is padding.
  BlockLayout(std::size_t gradient_count, std::size_t sum_count, std::size_t most_gradients = 0)
      : gradient_count_(gradient_count), most_gradients_(most_gradients), sum_count_(sum_count) {}

  std::size_t gradient_count() const { return gradient_count_; }
  // Not zero: devices add something even if a model has no gradients.
  std::size_t gradient_floats() const {
    return whole_lines(std::max<std::size_t>({gradient_count_, most_gradients_, 1}));
  }
  // Before the pass it carries what the sums are divided by instead: one number for the first sum, and two for each
  // output, of whose losses and metrics there are sums too.
  std::size_t tail_floats() const {
    return whole_lines(std::max(sum_count_ + kWeights + kRequests + kCheckFloats, 2 * sum_count_));
  }
  std::size_t block_floats() const { return gradient_floats() + tail_floats(); }

  // Parts of a tail.
  template <typename Float>
  std::span<Float> sums(std::span<Float> tail) const {
    return tail.first(sum_count_);
  }
  // The same, followed by the sum of the sample weights.
  template <typename Float>
  std::span<Float> weighted_sums(std::span<Float> tail) const {
    return tail.first(sum_count_ + kWeights);
  }
  template <typename Float>
  std::span<Float> check(std::span<Float> tail) const {
    return tail.subspan(sum_count_ + kWeights + kRequests, kCheckFloats);
  }

  // A rank writes 1 for each of its requests, in one of its shards; a sum above 0 means that some rank made it.
  void write_requests(const StepRequests& requests, std::span<float> tail) const {
    const std::span<float> floats = tail.subspan(sum_count_ + kWeights, kRequests);
    floats[0] = requests.stop ? 1.0F : 0.0F;
    floats[1] = requests.regroup ? 1.0F : 0.0F;
    floats[2] = requests.comparison ? 1.0F : 0.0F;
    floats[3] = requests.savepoint ? 1.0F : 0.0F;
    floats[4] = requests.end ? 1.0F : 0.0F;
  }
  StepRequests requests(std::span<const float> tail) const {
    const std::span<const float> floats = tail.subspan(sum_count_ + kWeights, kRequests);
    return {.stop = floats[0] > 0,
            .regroup = floats[1] > 0,
            .savepoint = floats[3] > 0,
            .comparison = floats[2] > 0,
            .end = floats[4] > 0};
  }

 private:
  static constexpr std::size_t kWeights = 1;
  static constexpr std::size_t kRequests = 5;
  static constexpr std::size_t kLineFloats = 16;

  static std::size_t whole_lines(std::size_t floats) { return (floats + kLineFloats - 1) / kLineFloats * kLineFloats; }

  std::size_t gradient_count_;
  std::size_t most_gradients_;
  std::size_t sum_count_;
};

}  // namespace holdfast
