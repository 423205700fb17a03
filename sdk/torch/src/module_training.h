#pragma once

// What an AnyTrainableModule computes: shards by the modules of its workers, and updates of the arenas that they view.

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "holdfast/torch/trainable_module.h"
#include "module_arrays.h"
#include "optim/gradient_clipper.h"
#include "torch_errors.h"
#include "torch_optimizer.h"
#include "train/step/grouped_update.h"

namespace holdfast::torch {

// LibTorch has one generator for all threads of the process.
std::mutex& generator_lock();
// LibTorch's operations are quickest on memory that begins with a cache line.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>& /*other*/) {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* from, std::size_t /*count*/) { ::operator delete(from, kAlignment); }
  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
};
using ArenaFloats = std::vector<float, CacheLineAllocator<float>>;

// Sets the number of threads of LibTorch's operations on the calling thread, which has its own.
void use_threads(int threads);

class AnyTrainableModule::Implementation {
 public:
  // Errors: as AnyTrainableModule.
  explicit Implementation(ModuleFunctions given);

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
  Batch batch_of(const ShardBatch& shard) const;
  WorkerModule& worker(const ShardBatch& shard);
  float sum_of(const at::Tensor& values, const ShardBatch& shard, const at::Tensor& weights,
               const std::string& what) const;
  at::Tensor weights_of(const ShardBatch& shard) const;
  void write_sums(const Outputs& outputs, const at::Tensor& loss, const Batch& batch, const ShardBatch& shard,
                  std::span<float> sums) const;
  void train_shard(const ShardBatch& shard, std::span<float> gradients, std::span<float> sums);
  void seed_and_train(const ShardBatch& shard, std::span<float> gradients, std::span<float> sums);
  void train_twice(const ShardBatch& shard, std::span<float> gradients, std::span<float> sums);
  void check_hidden_state(const ShardBatch& shard);
  Outputs forward_in_eval(WorkerModule& module, const ShardBatch& shard, const Batch& batch);
  Outputs infer(const ShardBatch& shard, const Batch& batch);
  std::span<const float> final_gradients(const Update& update);
  void update_parameters(const Update& update);
  void update_buffers(std::span<const float> tail);

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
  int threads_per_shard = 1;
  int threads = 1;         // of an update
  std::int64_t steps = 0;  // after the last update of this process
  ArenaFloats parameters, frozen, buffers, counts;
  std::vector<ArenaFloats> slots;
  ArenaFloats divided;
  std::unique_ptr<compute::Backend> backend;  // passes of Holdfast's optimizers
  std::optional<GradientClipper> clipper;
  std::optional<GroupedUpdate> grouped;
};

}  // namespace holdfast::torch
