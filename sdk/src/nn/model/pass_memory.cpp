// The numbers come from the plan that a program would make, so they are exact for the arrays of operations. None of
// these arrays is allocated.

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"
#include "nn/model/description.h"
#include "nn/plan/model_plan.h"

namespace holdfast {

static std::size_t batch_bytes(const std::vector<ModelArray>& arrays, std::int64_t samples) {
  std::size_t bytes = 0;
  for (const ModelArray& array : arrays) {
    bytes += static_cast<std::size_t>(samples * array.spec.shape.element_count()) * size_bytes(array.spec.dtype);
  }
  return bytes;
}

// The bound keeps sums of sizes within 63 bits.
static void check_samples(const Graph& graph, std::int64_t samples) {
  std::int64_t elements = 1;  // of a sample, in all arrays; each has at most 2^40
  for (const GraphArray& array : graph.arrays) elements += array.spec.shape.element_count();
  constexpr std::int64_t kMost = std::int64_t{1} << 58;
  if (samples >= 1 && samples <= kMost / elements) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the memory for {} samples was asked for; ask for a number from 1 to {}", samples,
                          std::max<std::int64_t>(kMost / elements, 1)));
}

// Fills in what the operations of a graph need.
static PassMemory with_operations(const ModelDescription& model, const Graph& graph, std::int64_t samples,
                                  PassMemory memory) {
  const bool is_training = &graph == &model.training;
  memory.weights = (model.parameters.float_count() + model.buffers.float_count()) * sizeof(float);
  const auto backend = compute::make_cpu_backend(1);
  const ModelPlan plan(graph, model.memory_options(samples), *backend, is_training);
  memory.arrays = plan.arena_bytes();
  memory.workspace = backend->workspace_bytes() + plan.own_bytes_of_kernels();
  return memory;
}

PassMemory Model::training_memory(std::int64_t samples) const {
  const ModelDescription& model = *description_;
  check_samples(model.training, samples);
  // Each thread has gradients of its own, and the sums for moving averages come with them.
  return with_operations(model, model.training, samples,
                         {.gradients = (model.parameters.float_count() + model.contribution_count()) * sizeof(float),
                          .samples = batch_bytes(model.inputs, samples) + batch_bytes(model.outputs, samples)});
}

PassMemory Model::prediction_memory(std::int64_t samples) const {
  const ModelDescription& model = *description_;
  check_samples(model.inference, samples);
  return with_operations(model, model.inference, samples, {.samples = batch_bytes(model.inputs, samples)});
}

}  // namespace holdfast
