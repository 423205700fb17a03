// A gradient of a large kernel takes more time on its way to memory and back than in the processor. Here it goes there
// once: products and partial sums of a tile stay in the cache of the thread that computes them. All shards are there
// when the sums are made, so that all threads of the rank share the tiles. Which thread computes a tile changes nothing
// in it.

#include "train/step/deferred_sums.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/cpu/products/tile_product.h"
#include "holdfast/base/error.h"

namespace holdfast {

using compute::DeferredProduct;
using compute::DeferredProducts;

// A product, and a block for the sum at each level of the tree. Memory is kept from tile to tile.
class DeferredSums::Tiles {
 public:
  // A tile of gradient number `gradient` of the shards, added up. Returns whether it is finite; true for one shard.
  bool add(std::span<Shard> shards, ShardRange node, std::size_t gradient, std::int64_t tile, float* to) {
    if (node.count() == 1) {
      product_.run(product_of(shards, node, gradient), tile, to);
      return true;
    }
    const std::int64_t floats = floats_of(product_of(shards, node, gradient), tile);
    const auto children = ShardTree::children(node);
    // Both in the cache; the sum alone goes to memory.
    float* const left = block(0, floats);
    float* const right = block(1, floats);
    add_in_cache(shards, children.first, gradient, tile, left, 2);
    add_in_cache(shards, children.second, gradient, tile, right, 2);
    return compute::vector_kernels().add_past_cache(left, right, floats, to);
  }

 private:
  static const DeferredProduct& product_of(std::span<Shard> shards, ShardRange node, std::size_t gradient) {
    return *shards[static_cast<std::size_t>(node.begin)].products.products()[gradient];
  }
  static std::int64_t floats_of(const DeferredProduct& product, std::int64_t tile) {
    return product.rows_of(tile) * product.outputs;
  }

  // Blocks from `first_free` on may be used.
  void add_in_cache(std::span<Shard> shards, ShardRange node, std::size_t gradient, std::int64_t tile, float* to,
                    std::size_t first_free) {
    const DeferredProduct& product = product_of(shards, node, gradient);
    if (node.count() == 1) return product_.run(product, tile, to);
    const std::int64_t floats = floats_of(product, tile);
    const auto children = ShardTree::children(node);
    add_in_cache(shards, children.first, gradient, tile, to, first_free);
    float* const right = block(first_free, floats);
    add_in_cache(shards, children.second, gradient, tile, right, first_free + 1);
    host_memory().add({right, static_cast<std::size_t>(floats)}, {to, static_cast<std::size_t>(floats)});
  }

  float* block(std::size_t number, std::int64_t floats) {
    while (blocks_.size() <= number) blocks_.emplace_back();
    blocks_[number].grow_to(static_cast<std::size_t>(floats));
    return blocks_[number].data();
  }

  compute::TileProduct product_;
  std::vector<compute::AlignedFloats> blocks_;
};

// Tiles that no other thread uses meanwhile.
class DeferredSums::Borrowed {
 public:
  explicit Borrowed(DeferredSums& owner) : owner_(owner) {
    const std::lock_guard lock(owner_.mutex_);
    if (owner_.free_.empty()) {
      tiles_ = std::make_unique<Tiles>();
      // Giving them back must not fail.
      owner_.free_.reserve(++owner_.made_);
      return;
    }
    tiles_ = std::move(owner_.free_.back());
    owner_.free_.pop_back();
  }
  ~Borrowed() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.free_.push_back(std::move(tiles_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  Tiles* operator->() const { return tiles_.get(); }

 private:
  DeferredSums& owner_;
  std::unique_ptr<Tiles> tiles_;
};

DeferredSums::DeferredSums() = default;
DeferredSums::~DeferredSums() = default;

void DeferredSums::begin(int shards, const compute::DeferralLimits& limits) {
  if (shards_.size() < static_cast<std::size_t>(shards)) shards_.resize(static_cast<std::size_t>(shards));
  for (Shard& shard : shards_) {
    shard.products.reset(limits);
    shard.ranges.clear();
  }
}

std::span<const FloatRange> DeferredSums::ranges_of(int shard) {
  Shard& found = shards_[static_cast<std::size_t>(shard)];
  found.ranges.clear();
  for (const DeferredProduct* const product : found.products.products())
    found.ranges.push_back({.begin = product->begin, .end = product->end()});
  return found.ranges;
}

std::optional<bool> DeferredSums::add(ShardRange node, std::span<float> sum, const ArrayPasses& passes) {
  const std::span<const DeferredProduct* const> products = of(node.begin).products();
  // A shard that left other gradients than its siblings would be missing in a sum.
  for (int shard = node.begin; shard < node.end; ++shard) {
    HOLDFAST_ASSERT(std::ranges::equal(of(shard).products(), products, [](const auto* a, const auto* b) {
      return a->begin == b->begin && a->inputs == b->inputs && a->outputs == b->outputs;
    }));
  }
  if (products.empty()) return std::nullopt;
  std::atomic<bool> is_finite = true;
  // One gradient after another, so that the threads read the same factors.
  for (std::size_t gradient = 0; gradient < products.size(); ++gradient) {
    const DeferredProduct& first = *products[gradient];
    float* const to = sum.data() + first.begin;
    const auto add_tiles = [&](std::size_t begin, std::size_t end) {
      const Borrowed tiles(*this);
      for (auto tile = static_cast<std::int64_t>(begin); tile < static_cast<std::int64_t>(end); ++tile) {
        float* const rows = to + tile * DeferredProduct::kTileRows * first.outputs;
        if (!tiles->add(shards_, node, gradient, tile, rows)) is_finite = false;
      }
    };
    const auto floats_each = static_cast<std::size_t>(DeferredProduct::kTileRows * first.outputs * node.count());
    passes(static_cast<std::size_t>(first.tiles()), floats_each, std::ref(add_tiles));
  }
  if (node.count() == 1) return std::nullopt;
  return is_finite;
}

}  // namespace holdfast
