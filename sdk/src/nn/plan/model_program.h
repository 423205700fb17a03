#pragma once

// A model that runs: what training and prediction call. Use one object from one thread at a time;
// several objects may run on several threads. The same samples, parameters and draws give the same bits
// for the same number of threads, whatever ran before.
//
// Arrays and operations are made at the first use of a number of samples and kept for the most recent
// ones.

#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/growing_floats.h"
#include "holdfast/nn/sequential.h"
#include "nn/model_stage.h"

namespace holdfast {

class ModelPlan;
using compute::Draws;

class ModelProgram {
 public:
  // A shard of a batch and of an epoch's last batch, in training and in evaluation, and some to spare.
  static constexpr std::size_t kPlansKept = 8;

  ModelProgram(const Sequential& model, std::unique_ptr<compute::Backend> backend);
  // On the CPU.
  ModelProgram(const Sequential& model, int threads);
  ~ModelProgram();

  // What passes of so many samples need is made; until another number is prepared they only queue work, and may be
  // repeated (compute::Backend::repeat()) under the numbers that are returned and those of the arrays that they are
  // given. The draws are those of the training that follows. At least one sample.
  std::vector<std::uint64_t> prepare_training(std::int64_t samples, const Draws& draws);
  std::vector<std::uint64_t> prepare_inference(std::int64_t samples);

  // All arrays lie in the back end's memory space. Those of parameters, gradients and buffers are arenas of the model's
  // layouts. `features` is [samples,
  // input...]; what is returned is [samples, output...], valid until the next forward pass. No samples are fine and
  // give no outputs.
  //
  // The features are not copied: they must stay as they are until backward() has returned.
  std::span<const float> forward_training(std::span<const float> features, std::int64_t samples,
                                          std::span<const float> parameters, const Draws& draws);
  // With what was prepared.
  std::span<const float> forward_training(std::span<const float> features, std::int64_t samples,
                                          std::span<const float> parameters);
  std::span<const float> forward_inference(std::span<const float> features, std::int64_t samples,
                                           std::span<const float> parameters, std::span<const float> buffers);

  // After forward_training(), with the same parameters. Overwrites all of `gradients`, its padding with
  // zeros, and all of `contributions`: what the samples of this shard add to the sums from which
  // update_buffers() computes the buffers.
  void backward(std::span<const float> output_gradient, std::span<const float> parameters, std::span<float> gradients,
                std::span<float> contributions);

  // The same in parts, for a caller that uses some gradients while the others are computed. Each part
  // but the last completes at least `least_floats` floats. Needs what was prepared, and the features of
  // the forward pass. Compute all parts in their order, with the same arrays.
  std::vector<BackwardPart> backward_parts(std::int64_t samples, std::size_t least_floats);
  struct BackwardArrays {
    std::span<const float> features;
    std::span<const float> output_gradient;
    std::span<const float> parameters;
    std::span<float> gradients;
    std::span<float> contributions;  // complete after the first part
  };
  void backward_part(const BackwardPart& part, std::int64_t samples, const BackwardArrays& arrays);

  // What each pass calls before each layer; an exception of it ends the pass and reaches its caller.
  void call_before_layers(BeforeLayer before_layer) { before_layer_ = std::move(before_layer); }

  compute::Backend& backend() { return *backend_; }
  std::size_t contribution_count() const { return contribution_count_; }
  // `contributions` are those of all shards of a batch, added up.
  void update_buffers(std::span<const float> contributions, std::span<float> buffers) const;

  // What the bits depend on besides the model: see compute::Backend::description().
  std::string arithmetic() const { return backend_->description(); }

 private:
  struct NumberedPlan {
    std::shared_ptr<ModelPlan> plan;
    std::uint64_t number = 0;  // no other one ever has it
  };

  const NumberedPlan& plan(std::int64_t samples, bool is_training);
  void run_backward(ModelPlan& plan, const BackwardPart& part, const BackwardArrays& arrays);
  void clear_padding(std::span<float> gradients) const;
  std::vector<std::span<float>> buffers_of(const SequentialLayer& layer, std::span<float> buffers) const;

  const Sequential model_;
  const std::unique_ptr<compute::Backend> backend_;
  const std::size_t contribution_count_;
  const std::vector<compute::DeviceKernels::Gap> padding_;  // of the model's parameters
  BeforeLayer before_layer_ = [] {};
  std::list<NumberedPlan> plans_;  // most recent first
  std::uint64_t plans_made_ = 0;

  // Shared by all plans. Training has its own, so that an inference between its two passes does no harm.
  compute::GrowingFloats training_activations_;
  compute::GrowingFloats inference_activations_;
  compute::GrowingFloats gradients_a_;
  compute::GrowingFloats gradients_b_;

  // Of the last forward_training(); no plan for no samples.
  std::shared_ptr<ModelPlan> last_plan_;
  std::span<const float> last_features_;
  std::int64_t last_samples_ = -1;  // -1: none yet
};

}  // namespace holdfast
