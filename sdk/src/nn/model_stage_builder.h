#pragma once

// What a layer is given to turn itself into stages: where its weights lie, and for how many samples and passes to make
// them.

#include <memory>
#include <vector>

#include "compute/backend.h"
#include "holdfast/nn/sequential.h"
#include "nn/model_stage.h"

namespace holdfast {

struct BuiltModelStage {
  std::unique_ptr<ModelStage> stage;
  ModelStageTraits traits;
  std::int64_t input_elements = 0;  // of all samples together
  std::int64_t output_elements = 0;
  std::size_t parameters_begin = 0;  // of the layer, in the arena; only where the stage has some
};

class ModelStageBuilder {
 public:
  struct Options {
    std::int64_t samples = 0;  // at least 1
    bool is_training = false;
  };

  ModelStageBuilder(const Sequential& model, compute::Backend& backend, const Options& options)
      : model_(model), backend_(backend), options_(options) {}

  // Asks each layer for its stages, in order.
  std::vector<BuiltModelStage> build();

  // For layers:
  compute::Backend& backend() const { return backend_; }
  std::int64_t samples() const { return options_.samples; }
  bool is_training() const { return options_.is_training; }
  // What the operation of the next stage is to be made for.
  compute::Use use() const { return {.training = is_training(), .input_gradient = is_training() && has_parameters_}; }
  std::size_t layer_index() const { return layer_index_; }
  const Shape& input_shape() const { return layer().input_shape; }
  const Shape& output_shape() const { return layer().output_shape; }
  // Floats from the start of the arena, or of a shard's contributions, to what belongs to this layer.
  std::size_t parameter_offset(std::size_t parameter) const;
  std::size_t buffer_offset(std::size_t buffer) const;
  std::size_t contribution_offset() const { return contribution_offset_; }
  // A stage that makes the layer's output shape.
  void add(std::unique_ptr<ModelStage> stage, const ModelStageTraits& traits);
  // Nothing for Activation::linear.
  void add_activation(Activation activation);

 private:
  const SequentialLayer& layer() const { return model_.layers()[layer_index_]; }

  const Sequential& model_;
  compute::Backend& backend_;
  const Options options_;
  std::vector<BuiltModelStage> stages_;
  std::int64_t elements_ = 0;    // that the next stage takes as input
  bool has_parameters_ = false;  // of any stage so far
  std::size_t layer_index_ = 0;
  std::size_t contribution_offset_ = 0;
};

// Extent of the last axis, and product of the ones before it.
std::int64_t last_extent(const Shape& shape);
std::int64_t leading_elements(const Shape& shape);

}  // namespace holdfast
