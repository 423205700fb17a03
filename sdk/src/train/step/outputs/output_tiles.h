#pragma once

// The only output of a model whose last product, loss and metrics are computed some rows at a time
// (OutputEvaluation::rows_at_once()): what a worker does between the forward and the backward pass.

#include <cstdint>
#include <span>
#include <vector>

#include "nn/program/model_program.h"
#include "nn/program/product_tiles.h"
#include "train/step/outputs/output_sums.h"

namespace holdfast {

class OutputTiles {
 public:
  // `sums` and the back end must outlive it. The program leaves out its last product.
  OutputTiles(std::int64_t rows_at_once, OutputSums& sums, compute::Backend& backend)
      : sums_(sums), product_(rows_at_once, backend) {}

  // Makes what a shard of so many samples needs, and adds to `key` what the queued work depends on.
  void prepare(const LastProduct& product, std::int64_t samples, bool has_gradients,
               const OutputSums::Weighting& weighting, std::vector<std::uint64_t>& key);

  // `operands` is what a pass of the program has returned. Writes the sums, as OutputSums::run() does, and if they were
  // prepared the gradients: those of parameters to the arena `gradients`.
  void run(const ModelProgram::Outputs& operands, const OutputSums::Shard& shard, const ArenaLayout& parameters,
           std::span<float> gradients, float* sums);
  // What the backward pass begins with, after run().
  std::span<float* const> gradients() const { return product_.gradients(); }

 private:
  OutputSums& sums_;
  ProductTiles product_;
  std::size_t kernel_entry_ = LastProduct::kNoEntry;
  std::size_t bias_entry_ = LastProduct::kNoEntry;
  bool has_bias_ = false;
};

}  // namespace holdfast
