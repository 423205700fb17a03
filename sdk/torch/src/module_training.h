#pragma once

// What an AnyTrainableModule computes: shards by the modules of its workers, and updates of the arenas that they view.

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/growing_floats.h"
#include "holdfast/torch/trainable_module.h"
#include "module_arrays.h"
#include "optim/gradient_clipper.h"
#include "torch_device.h"
#include "torch_errors.h"
#include "torch_optimizer.h"
#include "train/step/grouped_update.h"

namespace holdfast::torch {

// LibTorch has one generator for all threads of the process.
std::mutex& generator_lock();
// Sets the number of threads of LibTorch's operations on the calling thread, which has its own.
void use_threads(int threads);

// A number of LibTorch that the host is going to read, and what it is multiplied by then.
struct Reading {
  at::Tensor number;
  float factor = 1;
};

class AnyTrainableModule::Implementation {
 public:
  // Errors: as AnyTrainableModule.
  explicit Implementation(ModuleFunctions given);
  // Tensors of LibTorch go before the stream of the back end, on which their memory may be given back.
  ~Implementation() {
    optimizer.reset();
    workers.clear();
    first.reset();
  }

  [[noreturn]] static void refuse(const std::string& sentence) {
    throw Error(ErrorCode::invalid_argument, "a TrainableModule: " + sentence);
  }

  void check() const;

  std::shared_ptr<::torch::nn::Module> made_module() const {
    return with_errors_of_torch("the making", [&] { return functions.make_module(); });
  }

  bool has_clipping() const {
    return functions.clipping.value || functions.clipping.norm || functions.clipping.global_norm;
  }

  void find_outputs();
  void clear_padding(std::span<float> gradients) const;
  void make_workers(const Workers& asked);
  void allocate(const Workers& asked);
  MemorySpace& memory() const { return backend->memory(); }
  at::Device place() const { return device ? device->place() : at::Device(at::kCPU); }
  // Each public function that asks LibTorch for work holds this meanwhile; null for the CPU.
  std::shared_ptr<void> enter() const { return device ? device->enter() : nullptr; }
  // An array of one of the arenas, from memory of the host.
  void store(std::span<const float> from, std::span<float> to) const { memory().copy_from_host(from, to); }
  // The shard with its rows in memory().
  ShardBatch placed(const ShardBatch& shard);
  Batch batch_of(const ShardBatch& shard) const;
  WorkerModule& worker(const ShardBatch& shard);
  Reading sum_of(const at::Tensor& values, const ShardBatch& shard, const at::Tensor& weights,
                 const std::string& what) const;
  at::Tensor weights_of(const ShardBatch& shard) const;
  std::vector<Reading> sums_of(const Outputs& outputs, const at::Tensor& loss, const Batch& batch,
                               const ShardBatch& shard) const;
  // Waits once for all of them.
  std::vector<float> read(std::span<const Reading> readings) const;
  void write_gradients(const std::vector<at::Tensor>& computed, std::span<float> gradients) const;
  void train_shard(const ShardBatch& shard, std::span<float> gradients, std::span<float> sums);
  void seed_and_train(const ShardBatch& shard, std::span<float> gradients, std::span<float> sums);
  void train_twice(const ShardBatch& shard, std::span<float> gradients, std::span<float> sums);
  std::vector<at::Tensor> generator_states() const;
  bool differ(std::span<const float> a, std::span<const float> b) const;
  void check_hidden_state(const ShardBatch& shard);
  bool have_same_bits(const Outputs& a, const Outputs& b);
  // Without gradients and the rest of a step.
  Outputs forward_alone(WorkerModule& module, const ShardBatch& shard, const Batch& batch, bool is_training);
  Outputs infer(const ShardBatch& shard, const Batch& batch);
  std::span<const float> final_gradients(const Update& update);
  void update_parameters(const Update& update);
  void step_of_torch(const Update& update, std::span<const float> gradients);
  void update_buffers(std::span<const float> tail);
  void queue_update_of_buffers(std::span<const float> sums, std::span<const float> changed) const;

  ModuleFunctions functions;
  std::shared_ptr<::torch::nn::Module> first;
  std::unique_ptr<ModuleArrays> arrays;
  std::vector<ArraySpec> output_specs;
  std::size_t parameter_floats = 0;
  std::size_t buffer_floats = 0;
  std::size_t tail_floats = 0;
  bool clipping_of_torch = false;
  std::optional<TorchOptimizer> optimizer;  // of LibTorch; else functions.optimizer
  std::vector<WorkerModule> workers;
  std::mutex first_shard;  // see train_twice()
  int threads_per_shard = 1;
  int threads = 1;                            // of an update
  std::int64_t steps = 0;                     // after the last update of this process
  std::unique_ptr<compute::Backend> backend;  // of the memory, and for passes of Holdfast's optimizers
  std::unique_ptr<TorchDevice> device;        // null on the CPU
  // An array in memory().
  struct Arena {
    std::shared_ptr<float[]> floats;
    std::size_t size = 0;

    std::span<float> span() const { return {floats.get(), size}; }
  };
  Arena parameters, frozen, buffers, counts;
  std::vector<Arena> slots;
  std::vector<std::span<float>> slot_spans;
  Arena divided;
  // Rows on the device, which came from the memory of the host.
  struct Rows {
    compute::GrowingFloats features;
    compute::GrowingFloats targets;
  };
  std::vector<Rows> rows;  // of each worker
  std::optional<GradientClipper> clipper;
  std::optional<GroupedUpdate> grouped;
};

}  // namespace holdfast::torch
