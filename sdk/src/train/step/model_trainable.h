#pragma once

// Holdfast's own models as a Trainable: a Model with optimizer, loss and metrics. Parameters, gradients and each
// optimizer slot have the same arena layout.

#include <memory>
#include <optional>
#include <vector>

#include "compute/growing_floats.h"
#include "holdfast/nn/loss.h"
#include "holdfast/nn/metric.h"
#include "holdfast/nn/model.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/train/trainable.h"
#include "nn/program/model_program.h"
#include "optim/gradient_clipper.h"

namespace holdfast {

class ModelTrainable final : public Trainable {
 public:
  // Throws Error{invalid_argument} if the loss does not fit the model's output, or the options of clipping contradict
  // each other.
  ModelTrainable(const Model& model, const Optimizer& optimizer, const Loss& loss,
                 std::vector<std::shared_ptr<const Metric>> metrics);

  std::string graph() const override { return model_.graph(); }
  std::string configuration() const override;
  std::string arithmetic() const override;
  Shape feature_shape() const override { return model_.input_shape(); }
  Shape target_shape() const override { return loss_->target_shape(model_.output_shape()); }
  Shape output_shape() const override { return model_.output_shape(); }
  void prepare(const Workers& workers) override;
  bool reads_samples_on_device() const override { return true; }
  void initialize(std::uint64_t seed) override;
  std::vector<StateSpan> state() override;
  std::vector<std::string> sum_names() const override;
  std::size_t gradient_count() const override;
  void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) override;
  void compute_sums(const ShardBatch& batch, std::span<float> sums) override;
  void predict(const ShardBatch& batch, std::span<float> outputs) override;
  void apply_update(const Update& update) override;
  void on_fit_end() override;
  MemorySpace& memory() override;

 private:
  // Copies on the device of what the host's memory holds of a shard.
  struct DeviceShard {
    compute::GrowingFloats features;
    compute::GrowingFloats targets;
    compute::GrowingFloats sums;  // followed by whether a gradient is not finite
  };
  struct WorkerState {
    std::unique_ptr<ModelProgram> program;
    compute::GrowingFloats output_gradient;  // [samples, output shape]
    std::optional<DeviceShard> device_shard{};
  };

  void allocate();
  // Queues a shard's passes, or has the device repeat its recording of them. Calls `after_part` after each part.
  using PartsToQueue = std::vector<std::function<void()>>;
  void repeat(WorkerState& state, const ShardBatch& batch, std::vector<std::uint64_t> key, const PartsToQueue& parts,
              const std::function<void(std::size_t part)>& after_part);
  WorkerState& worker(const ShardBatch& batch);
  // The shard's features and targets in the memory in which the worker computes.
  struct Inputs {
    std::span<const float> features;
    std::span<const float> targets;
  };
  Inputs inputs(WorkerState& state, const ShardBatch& batch) const;
  void queue_to_loss(WorkerState& state, const ShardBatch& batch, const Inputs& in, std::span<float> sums);
  void compute_no_samples(WorkerState& state, const ShardBatch& batch, GradientSink& sink, std::span<float> sums);
  // Computes loss and metrics, and the gradient of the loss unless `gradient` is null.
  void evaluate(WorkerState& state, const ShardBatch& batch, std::span<const float> outputs,
                std::span<const float> targets, float scale, float* gradient, std::span<float> sums) const;
  void evaluate_on(compute::DeviceKernels& device, WorkerState& state, const ShardBatch& batch,
                   std::span<const float> outputs, const float* targets, float scale, float* gradient,
                   std::span<float> sums) const;

  // Waits for the shard's sums. Returns false if the device has looked for gradients that are not finite, and found
  // one.
  bool fetch_sums(WorkerState& state, const ShardBatch& batch, std::span<float> sums) const;

  Model model_;
  const bool has_given_weights_;
  const std::unique_ptr<Optimizer> optimizer_;
  const std::unique_ptr<Loss> loss_;
  const std::vector<std::shared_ptr<const Metric>> metrics_;

  std::vector<WorkerState> workers_;
  bool has_told_obstacle_ = false;  // the log has said why the device does not record
  // In memory(), made by the first prepare().
  struct Arena {
    std::shared_ptr<float[]> floats;
    std::size_t size = 0;

    std::span<float> span() const { return {floats.get(), size}; }
  };
  Arena parameters_;          // of model_.parameters()
  Arena buffers_;             // of model_.buffers()
  std::vector<Arena> slots_;  // of model_.parameters(), one for each slot of the optimizer
  std::optional<GradientClipper> clipper_;
};

}  // namespace holdfast
