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
#include "holdfast/core/array_passes.h"
#include "nn/program/value_program.h"
#include "train/step/output_evaluation.h"

namespace holdfast {

class OutputSums {
 public:
  // Both outlive it.
  OutputSums(const OutputEvaluation& evaluation, compute::Backend& backend)
      : evaluation_(evaluation), backend_(backend) {}

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
  // Throws SampleError if a loss on a device met a class label that does not exist, in a shard of so many samples.
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

  Programs& programs_for(const std::vector<Shape>& weights);
  std::int64_t weights_of_sample(std::size_t output) const;
  float scale_of(std::size_t output) const;
  void run_loss(const Shard& shard, std::size_t output, float* sum);
  void run_metric(const Shard& shard, std::size_t index, float* sums);
  void sum_weights(const Shard& shard, float* sum);

  const OutputEvaluation& evaluation_;
  compute::Backend& backend_;
  Weighting weighting_;
  std::vector<std::unique_ptr<Programs>> made_;
  Programs* prepared_ = nullptr;
};

// quotients[i] = numbers[i] / divisor, in the memory of the back end. On the host the threads of `passes` share it.
void divide(compute::Backend& backend, std::span<const float> numbers, float divisor, std::span<float> quotients,
            const ArrayPasses& passes);

// Says which losses and metrics the host computes for this device, if there are any.
void log_host_computations(const OutputEvaluation& evaluation, const std::string& device);

}  // namespace holdfast
