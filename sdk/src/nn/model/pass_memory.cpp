// The numbers come from the plan that a program would make, so they are exact for the arrays of operations. Nothing is
// allocated for them.

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"
#include "nn/model/description.h"
#include "nn/plan/fusion.h"
#include "nn/plan/memory_plan.h"

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

static std::size_t plan_bytes(const ModelDescription& model, const Graph& graph, std::int64_t samples) {
  check_samples(graph, samples);
  // A program joins operations on elements, so the arrays between them must not be counted.
  const MemoryOptions options = {
      .samples = samples, .inputs = model.inputs.size(), .parameters = model.parameters, .buffers = model.buffers};
  return plan_memory(fuse_elements(graph), options).arena_bytes;
}

PassMemory Model::training_memory(std::int64_t samples) const {
  const ModelDescription& model = *description_;
  const std::size_t arrays = plan_bytes(model, model.training, samples);
  // Each thread has gradients of its own, and the sums for moving averages come with them.
  return {.weights = model.parameters.float_count() * sizeof(float),
          .gradients = (model.parameters.float_count() + model.contribution_count()) * sizeof(float),
          .samples = batch_bytes(model.inputs, samples) + batch_bytes(model.outputs, samples),
          .arrays = arrays};
}

PassMemory Model::prediction_memory(std::int64_t samples) const {
  const ModelDescription& model = *description_;
  const std::size_t arrays = plan_bytes(model, model.inference, samples);
  return {.weights = (model.parameters.float_count() + model.buffers.float_count()) * sizeof(float),
          .gradients = 0,
          .samples = batch_bytes(model.inputs, samples),
          .arrays = arrays};
}

}  // namespace holdfast
