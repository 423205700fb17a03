#pragma once

// The sums of what the shards of a rank have left to them: gradients of large kernels (compute/deferred_products.h).
// Each tile of rows of a gradient is computed for one shard after another, added in the order of the shard tree while
// it lies in the cache, and written to the slot that holds the sum of the shards. docs/decisions/sums.md

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "collective/shard_tree.h"
#include "compute/aligned_floats.h"
#include "compute/deferred_products.h"
#include "holdfast/core/array_passes.h"

namespace holdfast {

class DeferredSums {
 public:
  DeferredSums();
  ~DeferredSums();
  DeferredSums(const DeferredSums&) = delete;
  DeferredSums& operator=(const DeferredSums&) = delete;

  // Before the shards of a step: `shards` of them are to be added.
  void begin(int shards, const compute::DeferralLimits& limits);
  // What a shard leaves, by its number among those of the rank. Different shards may be computed at once.
  compute::DeferredProducts& of(int shard) { return shards_[static_cast<std::size_t>(shard)].products; }
  // After the shard was computed: where the gradients lie that it left. Valid until begin().
  std::span<const FloatRange> ranges_of(int shard);

  // Writes what the shards of `node`, numbered within the rank, left of their gradients, added up, to `sum`, on the
  // threads of `passes`. Returns whether all of it is finite; empty where nothing was left, or for a single shard,
  // whose numbers nobody has looked at. Throws Error as oneDNN does.
  std::optional<bool> add(ShardRange node, std::span<float> sum, const ArrayPasses& passes);

 private:
  struct Shard {
    compute::DeferredProducts products{};
    std::vector<FloatRange> ranges{};
  };
  // What a thread computes with.
  class Tiles;
  class Borrowed;

  std::vector<Shard> shards_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Tiles>> free_;  // guarded by mutex_
  std::size_t made_ = 0;                      // guarded by mutex_
};

}  // namespace holdfast
