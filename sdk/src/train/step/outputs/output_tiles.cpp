#include "train/step/outputs/output_tiles.h"

#include <functional>

namespace holdfast {

void OutputTiles::prepare(const LastProduct& product, std::int64_t samples, bool has_gradients,
                          const OutputSums::Weighting& weighting, std::vector<std::uint64_t>& key) {
  product_.prepare(product, samples * product.rows, has_gradients, key);
  sums_.prepare_tiles(samples, weighting, key);
  kernel_entry_ = product.kernel_entry;
  bias_entry_ = product.bias_entry;
  has_bias_ = product.has_bias;
}

void OutputTiles::run(const ModelProgram::Outputs& operands, const OutputSums::Shard& shard,
                      const ArenaLayout& parameters, std::span<float> gradients, float* sums) {
  const auto array = [&](std::size_t operand) { return reinterpret_cast<const float*>(operands[operand]); };
  // Evaluation has no gradients, and its product no entries.
  const auto gradient_of = [&](std::size_t entry) {
    return entry == LastProduct::kNoEntry ? nullptr : gradients.data() + parameters.entries()[entry].offset;
  };
  const auto loss = [&](const ProductTiles::Tile& tile) {
    sums_.run_tile(shard, {.number = tile.number,
                           .first = tile.first,
                           .rows = tile.rows,
                           .outputs = tile.results,
                           .gradient = tile.gradient});
  };
  sums_.begin_tiles(shard);
  product_.run({.input = array(0), .kernel = array(1), .bias = has_bias_ ? array(2) : nullptr},
               {.kernel = gradient_of(kernel_entry_), .bias = gradient_of(bias_entry_)}, std::ref(loss));
  sums_.end_tiles(shard, sums);
}

}  // namespace holdfast
