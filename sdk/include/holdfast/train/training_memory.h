#pragma once

// Plans the memory that training takes, before anything of it is allocated:
//
//   const TrainingMemory memory = training_memory(replica, model, Adam{}, {loss}, train.batch(256).prefetch(2));
//   std::printf("%zu bytes, %zu of them for arrays between layers\n", memory.total(), memory.passes);
//
// Model::training_memory() and Model::summary(n) plan one pass of one thread alone; the figures here hold all that
// fit() keeps. On CPUs they are within a tenth of what a process takes without huge pages, once it takes some 30 MB.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/data/dataset.h"
#include "holdfast/nn/model.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/train/output_losses.h"
#include "holdfast/train/replica.h"

namespace holdfast {

// In bytes. Counted is a process that computes all shards of a batch: one of Replica::alone(), or the last survivor of
// a run. Where others compute a part of the shards, `samples` and `gradients` are smaller.
//
// Not counted are the samples of the data set itself, what a validation adds (Model::prediction_memory() of a shard,
// and its batches), the code of kernels, stacks of threads, and what the allocator keeps.
struct TrainingMemory {
  // Parameters, buffers, the optimizer's slots, averages of weights, kept weights, and the copy of the weights that the
  // model has after fit().
  std::size_t state = 0;
  // Sums of shards, and the gradients as clipping, penalties and sample weights make them.
  std::size_t gradients = 0;
  // Batches that are in use and loaded ahead, with their targets.
  std::size_t samples = 0;
  // For all shards that are computed at once: arrays between layers, gradients of outputs, samples that are converted,
  // the workspace of kernels, and what losses and metrics compute.
  std::size_t passes = 0;
  // The copy of the state for a savepoint, and the one for the memory snapshot. Only a run with a run directory has
  // them.
  std::size_t saving = 0;

  std::size_t total() const { return state + gradients + samples + passes + saving; }  // in bytes
};

// What fit() is to be called with, as far as it takes memory.
struct TrainingMemoryOptions {
  std::int64_t accumulate = 1;          // as FitOptions::accumulate
  bool keeps_weights = false;           // whether a callback keeps the weights of its best epoch (EarlyStopping)
  std::vector<MetricHandle> metrics{};  // of the Trainer
};

// `data` is in batches. Makes the kernels of a step, which may take as long as a first step, but none of its arrays.
//
// Throws
//   - Error{invalid_argument} for data without batches, losses and metrics that do not fit the model, and numbers below
//     1;
//   - Error{unsupported} on devices that are not CPUs, whose memory this does not plan.
TrainingMemory training_memory(const Replica& replica, const Model& model, const Optimizer& optimizer,
                               const std::vector<LossHandle>& losses, const Dataset& data,
                               const TrainingMemoryOptions& options = {});

// The layers of the model as Model::summary() shows them, then what training_memory() plans, part by part, for this
// replica's threads, optimizer and batches:
//
//   std::cout << training_summary(replica, model, Adam{}, {loss}, train.batch(256));
//
// Throws what training_memory() throws.
std::string training_summary(const Replica& replica, const Model& model, const Optimizer& optimizer,
                             const std::vector<LossHandle>& losses, const Dataset& data,
                             const TrainingMemoryOptions& options = {});

}  // namespace holdfast
