#pragma once

// Computes the product that ends a model (last_product.h) and its gradients for some rows at a time, so that results
// and their gradient take memory for these rows alone. For one worker, as a ModelProgram.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "compute/backend.h"
#include "compute/growing_floats.h"
#include "nn/program/last_product.h"

namespace holdfast {

class ProductTiles {
 public:
  // Tiles of so many rows, and one of the rest. The back end must outlive this object.
  ProductTiles(std::int64_t rows_at_once, compute::Backend& backend);

  // Makes what a shard of so many rows needs, and adds to `key` what the queued work depends on.
  void prepare(const LastProduct& product, std::int64_t rows, bool has_gradients, std::vector<std::uint64_t>& key);
  // Only the operations of it, for the memory that the back end counts.
  void make_operations(const LastProduct& product, std::int64_t rows, bool has_gradients);
  // How much other memory that is.
  static std::size_t planned_floats(const LastProduct& product, std::int64_t rows, std::int64_t rows_at_once,
                                    bool has_gradients);

  struct Operands {
    const float* input = nullptr;  // [rows, inputs]
    const float* kernel = nullptr;
    const float* bias = nullptr;  // null without a bias
  };
  // Where gradients of parameters are written; null: to memory of this object, or nowhere if they are not wanted.
  struct ParameterGradients {
    float* kernel = nullptr;
    float* bias = nullptr;
  };
  struct Tile {
    std::int64_t number = 0;
    std::int64_t first = 0;  // row
    std::int64_t rows = 0;
    const float* results = nullptr;  // [rows, outputs]
    float* gradient = nullptr;       // of the results, to be written; null if none is wanted
  };
  // Queues the work for what was prepared last: for each tile its results, then `loss`, then the gradients. Those of
  // kernel and bias are added in the order of the tiles.
  void run(const Operands& operands, const ParameterGradients& parameters,
           const std::function<void(const Tile& tile)>& loss);
  // The gradients of input, kernel and bias, after run(); what is not wanted is null.
  std::span<float* const> gradients() const { return {gradients_, 3}; }

 private:
  // Where the arrays begin in the block, in floats.
  struct Layout {
    Layout(const LastProduct& product, std::int64_t rows, std::int64_t rows_at_once, bool has_gradients);

    std::size_t results = 0;
    std::size_t results_gradient = 0;
    std::size_t input_gradient = 0;
    std::size_t kernel_gradient = 0;
    std::size_t bias_gradient = 0;
    std::size_t kernel_part = 0;  // of one tile
    std::size_t bias_part = 0;
    std::size_t floats = 0;
  };

  compute::DenseOperation& operation(std::int64_t rows) const;
  void make_operation(std::int64_t rows);
  void add_parts(const ParameterGradients& sums);

  const std::int64_t rows_at_once_;
  compute::Backend& backend_;
  compute::GrowingFloats block_;
  // Made at the first use of a number of rows, and of passes.
  using Made = std::tuple<std::int64_t, bool, bool>;
  std::map<Made, std::unique_ptr<compute::DenseOperation>> operations_;
  // What was prepared last.
  LastProduct product_;
  std::int64_t rows_ = 0;
  bool has_gradients_ = false;
  float* gradients_[3] = {};
};

}  // namespace holdfast
