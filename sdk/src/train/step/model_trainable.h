#pragma once

// Holdfast's own models as a Trainable: a Sequential with optimizer, loss and metrics. Parameters, gradients and each
// optimizer slot share one arena layout.

#include <memory>
#include <optional>
#include <vector>

#include "compute/growing_floats.h"
#include "holdfast/nn/loss.h"
#include "holdfast/nn/metric.h"
#include "holdfast/nn/sequential.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/train/trainable.h"
#include "nn/model_program.h"
#include "optim/gradient_clipper.h"

namespace holdfast {

class ModelTrainable final : public Trainable {
 public:
  // Throws Error{invalid_argument} when the loss cannot be computed of the model's output.
  ModelTrainable(const Sequential& model, const Optimizer& optimizer, const Loss& loss,
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
  // On the device, where there is one: what the host's memory holds of a shard.
  struct DeviceShard {
    compute::GrowingFloats features;
    compute::GrowingFloats targets;
    compute::GrowingFloats sums;  // and, behind them, whether a gradient is not finite
  };
  struct WorkerState {
    std::unique_ptr<ModelProgram> program;
    compute::GrowingFloats output_gradient;  // [samples, output shape]
    std::optional<DeviceShard> device_shard{};
  };

  void allocate();
  // Queues a shard's passes, or has the device repeat what it has recorded of them.
  using PartsToQueue = std::vector<std::function<void()>>;
  void repeat(WorkerState& state, const ShardBatch& batch, std::vector<std::uint64_t> key, const PartsToQueue& parts,
              const std::function<void(std::size_t part)>& after_part);
  WorkerState& worker(const ShardBatch& batch);
  // The shard's features and targets where the worker computes.
  struct Inputs {
    std::span<const float> features;
    std::span<const float> targets;
  };
  Inputs inputs(WorkerState& state, const ShardBatch& batch) const;
  void queue_to_loss(WorkerState& state, const ShardBatch& batch, const Inputs& in, std::span<float> sums);
  void compute_no_samples(WorkerState& state, const ShardBatch& batch, GradientSink& sink, std::span<float> sums);
  // Loss and metrics; the gradient of the loss where it is not null.
  void evaluate(WorkerState& state, const ShardBatch& batch, std::span<const float> outputs,
                std::span<const float> targets, float scale, float* gradient, std::span<float> sums) const;
  void evaluate_on(compute::DeviceKernels& device, WorkerState& state, const ShardBatch& batch,
                   std::span<const float> outputs, const float* targets, float scale, float* gradient,
                   std::span<float> sums) const;

  // Whether all gradients are finite, where the device has looked for that.
  bool fetch_sums(WorkerState& state, const ShardBatch& batch, std::span<float> sums) const;

  Sequential model_;
  const bool has_given_weights_;
  const std::unique_ptr<Optimizer> optimizer_;
  const std::unique_ptr<Loss> loss_;
  const std::vector<std::shared_ptr<const Metric>> metrics_;

  std::vector<WorkerState> workers_;
  bool has_told_obstacle_ = false;  // why the device does not record
  // In memory(), made by the first prepare().
  struct Arena {
    std::shared_ptr<float[]> floats;
    std::size_t size = 0;

    std::span<float> span() const { return {floats.get(), size}; }
  };
  Arena parameters_;          // of model_.parameters()
  Arena buffers_;             // of model_.buffers()
  std::vector<Arena> slots_;  // of model_.parameters(), one a slot of the optimizer
  std::optional<GradientClipper> clipper_;
};

}  // namespace holdfast
