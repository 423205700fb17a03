#pragma once

// A model that runs: what training and prediction call. Use one object from one thread at a time;
// several objects may run on several threads. The same samples, parameters and draws give the same bits
// for the same number of threads, whatever ran before.
//
// Arrays and operations are made at the first use of a number of samples and kept for the most recent
// ones.

#include <array>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/growing_floats.h"
#include "holdfast/nn/model.h"
#include "nn/plan/model_plan.h"
#include "nn/program/last_product.h"

namespace holdfast {

using compute::RandomKey;

class ModelProgram {
 public:
  // A shard of a batch and of an epoch's last batch, in training and in evaluation, and some to spare.
  static constexpr std::size_t kPlansKept = 8;

  ModelProgram(const Model& model, std::unique_ptr<compute::Backend> backend);
  // Computes on the CPU.
  ModelProgram(const Model& model, int threads);
  ~ModelProgram();

  // What passes of so many samples need is made; until another number is prepared they only queue work. It may be
  // repeated (compute::Backend::repeat()) under the numbers that are returned, together with the addresses of the
  // arrays that passes are given. The draws are those of the training that follows. At least one sample.
  using RepeatKey = std::array<std::uint64_t, 2>;
  RepeatKey prepare_training(std::int64_t samples, const RandomKey& draws);
  RepeatKey prepare_inference(std::int64_t samples);

  // All arrays lie in the back end's memory space. Those of parameters, gradients and buffers are arenas of the model's
  // layouts. `features` is the model's only input, [samples, input...]; what is returned is its only output, [samples,
  // output...], valid until the next forward pass. No samples are fine and give no outputs.
  //
  // The features are not copied: they must stay as they are until backward() has returned.
  std::span<const float> forward_training(std::span<const float> features, std::int64_t samples,
                                          std::span<const float> parameters, const RandomKey& draws);
  // With what was prepared.
  std::span<const float> forward_training(std::span<const float> features, std::int64_t samples,
                                          std::span<const float> parameters);
  std::span<const float> forward_inference(std::span<const float> features, std::int64_t samples,
                                           std::span<const float> parameters, std::span<const float> buffers);

  // The same for a model with several inputs or outputs: their addresses, in the model's order. At least one sample.
  // The list that is returned is the program's own and changes with the next pass.
  using Inputs = std::vector<const std::byte*>;
  using Outputs = std::vector<const std::byte*>;
  const Outputs& run_training(const Inputs& inputs, std::int64_t samples, std::span<const float> parameters);
  const Outputs& run_inference(const Inputs& inputs, std::int64_t samples, std::span<const float> parameters,
                               std::span<const float> buffers);

  // From now on run_training() and run_evaluation() leave out the product that ends the model (last_product.h). They
  // return its operands, and the backward pass takes the gradients of input, kernel and bias in place of those of the
  // outputs. Throws as without_last_product() does.
  void leave_out_last_product();
  // The product as passes of training need it, or those of evaluation. Only after leave_out_last_product().
  const LastProduct& last_product(bool has_gradients) const;
  // Inference for losses and metrics: prepare_inference() and run_inference() with what was left out.
  RepeatKey prepare_evaluation(std::int64_t samples);
  const Outputs& run_evaluation(const Inputs& inputs, std::int64_t samples, std::span<const float> parameters,
                                std::span<const float> buffers);

  // After forward_training(), with the same parameters. Overwrites all of `gradients`, its padding with
  // zeros, and all of `contributions`: what the samples of this shard add to the sums from which
  // update_buffers() computes the buffers.
  void backward(std::span<const float> output_gradient, std::span<const float> parameters, std::span<float> gradients,
                std::span<float> contributions);

  // The same in parts, for a caller that uses some gradients while the others are computed. Each part
  // but the last completes at least `least_floats` floats. Needs what was prepared, and the features of
  // the forward pass. Compute all parts in their order, with the same arrays.
  const std::vector<BackwardPart>& backward_parts(std::int64_t samples, std::size_t least_floats);
  struct BackwardArrays {
    Inputs inputs;                               // as in the forward pass
    std::vector<const float*> output_gradients;  // one for each output
    std::span<const float> parameters;
    std::span<float> gradients;
    std::span<float> contributions;  // complete after the first part
  };
  void backward_part(const BackwardPart& part, std::int64_t samples, const BackwardArrays& arrays);

  // The arena of buffers that passes of training read too, for layers whose buffers stand still; it must outlive them.
  // Without one, only passes of inference have buffers.
  void read_buffers_from(std::span<const float> buffers) { training_buffers_ = buffers; }

  // Computes another model from now on, in the same memory space. All keys that were returned before are void.
  void replace_model(const Model& model);

  // What each pass calls before each operation; an exception of it ends the pass and reaches its caller.
  void call_before_operations(BeforeOperation before) { before_ = std::move(before); }

  // Where the gradients of a backward pass begin that one product of a dense layer writes, of one row for each sample,
  // and nothing reads: in floats of the arena, ascending. Valid until the model is replaced.
  std::span<const std::size_t> gradients_of_one_product() const { return of_one_product_; }

  compute::Backend& backend() { return *backend_; }
  std::size_t contribution_count() const { return contribution_count_; }
  // `contributions` are those of all shards of a batch, added up.
  void update_buffers(std::span<const float> contributions, std::span<float> buffers) const;

  // What the bits depend on besides the model: compute::Backend::description(), and Operation::arithmetic() of each
  // operation that has one.
  std::string arithmetic() const;

 private:
  struct NumberedPlan {
    std::shared_ptr<ModelPlan> plan;
    const Graph* graph = nullptr;
    std::uint64_t number = 0;  // no other one ever has it
  };
  // The graphs of the model before its last product.
  struct Cut {
    GraphBeforeProduct training;
    GraphBeforeProduct evaluation;
  };

  const Graph& training_graph() const;
  const Graph& evaluation_graph() const;
  const NumberedPlan& plan(std::int64_t samples, const Graph& graph);
  const Outputs& run_without_gradients(const Graph& graph, const Inputs& inputs, std::int64_t samples,
                                       std::span<const float> parameters, std::span<const float> buffers);
  void run_backward(ModelPlan& plan, const BackwardPart& part, const BackwardArrays& arrays);
  void clear_unwritten(std::span<float> gradients) const;
  const Outputs& outputs_of(const ModelPlan& plan, const ModelPlan::Bases& addresses);
  std::span<const float> only_output(const Outputs& outputs, std::int64_t samples) const;
  void update_moving(const float* sums, const float* count, float momentum, std::span<float> moving) const;
  // The addresses that a plan's arrays are counted from.
  ModelPlan::Bases& bases(const compute::GrowingFloats& arena, std::span<const float> parameters, const Inputs& inputs);

  Model model_;
  std::optional<Cut> cut_;
  const std::unique_ptr<compute::Backend> backend_;
  std::size_t contribution_count_;
  std::vector<compute::DeviceKernels::Gap> unwritten_;  // of the gradients, by any pass
  std::vector<std::size_t> of_one_product_;             // see gradients_of_one_product()
  BeforeOperation before_ = [](const std::string&) {};
  std::span<const float> training_buffers_;
  std::list<NumberedPlan> plans_;  // most recent first
  std::uint64_t plans_made_ = 0;

  // Shared by all plans. Training has its own, so that an inference between its two passes does no harm.
  compute::GrowingFloats training_arena_;
  compute::GrowingFloats inference_arena_;
  // Kept so that a pass allocates nothing.
  ModelPlan::Bases bases_;
  Outputs outputs_;

  // What the last forward_training() ran on. There is no plan for no samples.
  std::shared_ptr<ModelPlan> last_plan_;
  Inputs last_inputs_;
  std::int64_t last_samples_ = -1;  // -1: none yet
};

}  // namespace holdfast
