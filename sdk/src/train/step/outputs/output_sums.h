#pragma once

// Computes the losses and metrics of shards, with the gradients of the losses, for one worker.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/growing_floats.h"
#include "core/sample_error.h"
#include "holdfast/core/array_passes.h"
#include "nn/program/value_program.h"
#include "train/step/outputs/output_evaluation.h"

namespace holdfast {

// The rows of an output that a loss or metric takes, and the groups of neighbours that share a weight. Without weights
// a group is a sample.
struct SummedRows {
  std::size_t groups = 0;
  std::size_t each = 1;  // rows of a group
  std::size_t output_elements = 0;
  std::size_t target_elements = 0;
  std::int64_t first = 0;  // row of the shard

  std::int64_t count() const { return static_cast<std::int64_t>(groups * each); }
};

class OutputSums {
 public:
  // Both outlive it.
  OutputSums(const OutputEvaluation& evaluation, compute::Backend& backend)
      : evaluation_(evaluation), backend_(backend), row_weights_(backend.memory()), tile_sums_(backend.memory()) {}

  // What the weights of a shard are like, and what the gradients of the losses are multiplied by.
  struct Weighting {
    std::vector<Shape> weights{};  // of a sample, for each output; empty without weights
    std::vector<float> scales{};   // for each output
    bool has_own_divisors = false;
  };
  // Makes what a shard of so many samples needs, and adds to `key` what the queued work depends on.
  void prepare(std::int64_t samples, const Weighting& weighting, std::vector<std::uint64_t>& key);

  // A shard in the memory of the back end; one array for each output.
  struct Shard {
    std::vector<const float*> outputs;
    std::vector<const float*> targets;
    std::vector<const float*> weights{};  // empty: none
    std::int64_t samples = 0;             // at least 1
    std::vector<float*> gradients{};      // empty where none are wanted

    const float* weights_of(std::size_t output) const { return weights.empty() ? nullptr : weights[output]; }
  };
  // Computes a shard that was prepared. Writes the sums, and the sum of weights that all outputs share after them, to
  // `sums` in the same memory. OutputEvaluation::complete() completes them.
  void run(const Shard& shard, float* sums);
  // The same for the only output in tiles of rows (OutputEvaluation::rows_at_once()), so that it never lies in memory
  // whole. For each shard: prepare_tiles(), begin_tiles(), run_tile() for each tile in its order, end_tiles(). Outputs
  // and gradients of the shard are not used.
  struct Tile {
    std::int64_t number = 0;
    std::int64_t first = 0;  // row of the shard
    std::int64_t rows = 0;
    const float* outputs = nullptr;  // [rows, classes]
    float* gradient = nullptr;       // null if none is wanted
  };
  void prepare_tiles(std::int64_t samples, const Weighting& weighting, std::vector<std::uint64_t>& key);
  void begin_tiles(const Shard& shard);
  void run_tile(const Shard& shard, const Tile& tile);
  void end_tiles(const Shard& shard, float* sums);

  // Throws SampleError if a loss on a device met a target that no sample can have, in a shard of so many samples.
  void check_labels(std::int64_t samples);

  // Backend::repeat() for parts that call run(). What the host computes for a device cannot be recorded: it needs the
  // outputs in between. Nor can scales that differ in each step. Then the parts are called each time.
  using Parts = std::vector<std::function<void()>>;
  void repeat(std::span<const std::uint64_t> key, const Parts& parts,
              const std::function<void(std::size_t part)>& after_part);

 private:
  // The programs of losses and metrics that are functions of values; null for others.
  struct Programs {
    std::vector<Shape> weights;
    std::vector<std::unique_ptr<ValueProgram>> losses;
    std::vector<std::unique_ptr<ValueProgram>> metrics;
  };

  // Arrays of rows in the memory of the back end; null: no weights, no gradient wanted.
  struct Arrays {
    const float* outputs = nullptr;
    const float* targets = nullptr;
    const float* weights = nullptr;
    float* gradient = nullptr;
  };

  Programs& programs_for(const std::vector<Shape>& weights);
  std::int64_t weights_of_sample(std::size_t output) const;
  float scale_of(std::size_t output) const;
  void run_loss(const Shard& shard, std::size_t output, float* sum);
  void run_metric(const Shard& shard, std::size_t index, float* sums);
  // What the kernel of a loss or metric computes, or the host. It has no program.
  void compute_loss(std::size_t output, const SummedRows& rows, const Arrays& arrays, float scale, float* sum);
  void compute_metric(std::size_t index, const SummedRows& rows, const Arrays& arrays, float* sum);
  void sum_weights(const Shard& shard, float* sum);

  const OutputEvaluation& evaluation_;
  compute::Backend& backend_;
  Weighting weighting_;
  std::vector<std::unique_ptr<Programs>> made_;
  Programs* prepared_ = nullptr;

  // tile_sums.cpp
  using RowPrograms = std::vector<std::unique_ptr<ValueProgram>>;  // by metric; null for others
  RowPrograms& row_programs(bool has_weights);
  std::int64_t rows_of_tiles() const { return tiled_samples_ * evaluation_.rows_of_sample(); }
  std::size_t places_of_tile() const;
  // How many rows share a weight, or a place in the mean of a sample.
  std::int64_t rows_each(bool has_weights) const;
  void divide_sums(std::size_t count, std::int64_t divisor, float* sums);

  std::int64_t tiled_samples_ = 0;
  RowPrograms row_programs_[2];         // without weights, and with them
  compute::GrowingFloats row_weights_;  // of each row, where several have a common one
  compute::GrowingFloats tile_sums_;    // [tiles, places]
  std::vector<std::uint64_t> unused_key_;
};

// An error of a row of a shard, as one of a sample and a position in it. The shard has so many rows and samples.
SampleError with_position(const SampleError& error, std::int64_t rows, std::int64_t samples);

// quotients[i] = numbers[i] / divisor, in the memory of the back end. On the host the threads of `passes` share it.
void divide(compute::Backend& backend, std::span<const float> numbers, float divisor, std::span<float> quotients,
            const ArrayPasses& passes);

// Says which losses and metrics the host computes for this device, if there are any.
void log_host_computations(const OutputEvaluation& evaluation, const std::string& device);

}  // namespace holdfast
