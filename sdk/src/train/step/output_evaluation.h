#pragma once

// The losses and metrics of all outputs of a model, and what they make of a shard.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "holdfast/core/row_layout.h"
#include "holdfast/nn/model.h"
#include "holdfast/train/output_losses.h"

namespace holdfast {

class OutputEvaluation {
 public:
  // Throws Error{invalid_argument} unless there is one loss for each output, and if a loss does not fit its output or a
  // metric names none.
  OutputEvaluation(const Model& model, std::vector<LossHandle> losses, const std::vector<MetricHandle>& metrics);

  // The targets that the losses take, in the order of the outputs.
  std::vector<ArraySpec> targets() const;
  // Throws Error{invalid_argument} unless weights of this shape fit the outputs: one a sample, or one for each position
  // of the only output.
  void check_weights(const ArraySpec& weights) const;
  // "loss", then the loss of each output if there are several, then the metrics.
  std::vector<std::string> sum_names() const;
  // Adds the configurations of losses and metrics to a JSON object.
  void append_configuration(nlohmann::json& configuration) const;

  // A shard in the memory where it is computed; one array for each output.
  struct Shard {
    std::vector<const float*> outputs;
    std::vector<const float*> targets;
    const float* weights = nullptr;   // null: none
    std::int64_t samples = 0;         // at least 1
    std::int64_t weights_each = 1;    // of a sample
    float scale = 1;                  // of the gradients
    std::vector<float*> gradients{};  // null where none is wanted
  };
  // Writes the sums, and the sum of the weights after them if there are any.
  void evaluate(const Shard& shard, std::span<float> sums) const;
  // The same on a device: queues the work. `sums` lies there. Throws Error{unsupported} for weights.
  void evaluate_on(compute::DeviceKernels& device, const Shard& shard, float* sums) const;
  // Completes sums that came from a device.
  void add_losses(std::span<float> sums) const;

 private:
  struct OutputMetric {
    std::shared_ptr<const Metric> metric;
    std::size_t output = 0;
    std::string name;
  };

  bool has_several() const { return outputs_.size() > 1; }
  std::size_t elements(std::size_t output) const {
    return static_cast<std::size_t>(outputs_[output].spec.shape.element_count());
  }
  std::size_t target_elements(std::size_t output) const {
    return static_cast<std::size_t>(target_shapes_[output].element_count());
  }
  std::size_t output_named(const MetricHandle& metric) const;
  // Where the sum of an output's loss lies.
  std::size_t loss_place(std::size_t output) const { return has_several() ? 1 + output : 0; }
  std::size_t first_metric() const { return has_several() ? 1 + outputs_.size() : 1; }

  std::vector<ModelArray> outputs_;
  std::vector<LossHandle> losses_;
  std::vector<OutputMetric> metrics_;
  std::vector<Shape> target_shapes_;
};

}  // namespace holdfast
