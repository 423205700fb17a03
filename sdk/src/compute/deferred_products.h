#pragma once

// Gradients of large kernels that the shards of a replica leave to the sum over them.
//
// For few samples, most of the time of such a gradient goes into memory: each shard writes it, and the addition reads
// all of them and writes the sum. So a shard keeps the two factors of the product instead, which are small. When all
// shards are there, a tile of rows of each shard's product is computed and added while it lies in the cache, and only
// the sum is written. The bits are those of the products and the additions. docs/decisions/sums.md
//
//   DeferredProducts deferred;
//   deferred.reset(limits);
//   deferred.begin(gradients, kernels);           // a shard begins; its dense layers call take()
//   ...
//   TileProduct product;
//   product.run(*deferred.products()[0], tile, rows);

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/aligned_floats.h"
#include "compute/backend.h"

namespace holdfast::compute {

// gradient [inputs, outputs] = transposed input [samples, inputs] x output gradient [samples, outputs]
struct DeferredProduct {
  // Rows of a gradient in one tile; the last tile may have fewer.
  static constexpr std::int64_t kTileRows = 64;

  std::size_t begin = 0;  // of the gradient, in floats of all gradients
  std::int64_t samples = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  // The columns of a tile of the input lie together, [samples, rows of the tile], tile after tile.
  AlignedFloats input_tiles{};
  AlignedFloats output_gradient{};

  std::size_t end() const { return begin + static_cast<std::size_t>(inputs * outputs); }
  std::int64_t tiles() const { return (inputs + kTileRows - 1) / kTileRows; }
  std::int64_t rows_of(std::int64_t tile) const { return std::min(kTileRows, inputs - tile * kTileRows); }
};

// What all shards that are added have in common. They must leave the same gradients, so nothing else may decide.
struct DeferralLimits {
  // Samples of the smallest and of the largest shard, which differ by one at most.
  std::int64_t least_samples = 0;
  std::int64_t most_samples = 0;
  std::int64_t all_samples = 0;  // of all of them

  // Whether keeping the factors of a product [inputs, samples] x [samples, outputs] is worth it.
  bool allow(std::int64_t inputs, std::int64_t outputs) const;
  friend bool operator==(const DeferralLimits&, const DeferralLimits&) = default;
};

// The products of one shard. Memory grows to what the largest step needed, and is kept.
class DeferredProducts {
 public:
  // For the next shard: nothing is taken yet, and nothing will be before begin().
  void reset(const DeferralLimits& limits);
  // The shard writes to `gradients`. `kernels` are the beginnings of those that one product of a row for each sample
  // writes and nothing reads, in ascending order; they must outlive the shard.
  void begin(std::span<const float> gradients, std::span<const std::size_t> kernels);
  // Whether the product that would be written to `gradient` is to be left. The same for all shards, if what else the
  // caller asks for depends on these limits alone.
  bool wants(const DenseShape& shape, const float* gradient) const;
  const DeferralLimits& limits() const { return limits_; }
  // Keeps the factors of a product that it wants.
  void take(const DenseShape& shape, const float* input, const float* output_gradient, const float* gradient);

  // Those that were taken since reset(), in ascending order of their beginnings.
  std::span<const DeferredProduct* const> products() const { return taken_; }

 private:
  std::span<const float> gradients_;
  std::span<const std::size_t> kernels_;
  DeferralLimits limits_;
  std::vector<DeferredProduct> products_;  // by kernel
  std::vector<const DeferredProduct*> taken_;
};

}  // namespace holdfast::compute
