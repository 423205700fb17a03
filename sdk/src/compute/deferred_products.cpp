// Layers run backward, so products come mostly in descending order of their gradients. They are listed in ascending
// order, in which a sum goes through the gradients. Each kernel keeps its memory from step to step.

#include "compute/deferred_products.h"

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast::compute {

bool DeferralLimits::allow(std::int64_t inputs, std::int64_t outputs) const {
  // Smaller gradients stay in the caches between the shard and the addition.
  constexpr std::int64_t kLeastFloats = std::int64_t{1} << 20;
  // With more samples the products take longer than the memory. Up to here, a sum over the samples is one piece, in a
  // tile as in the whole.
  constexpr std::int64_t kMostSamples = 256;
  const std::int64_t gradient = inputs * outputs;
  return gradient >= kLeastFloats && most_samples <= kMostSamples &&
         // What is kept is at most half of what one shard's gradient would take.
         2 * all_samples * (inputs + outputs) <= gradient;
}

void DeferredProducts::reset(const DeferralLimits& limits) {
  limits_ = limits;
  kernels_ = {};
  taken_.clear();
}

void DeferredProducts::begin(std::span<const float> gradients, std::span<const std::size_t> kernels) {
  gradients_ = gradients;
  kernels_ = kernels;
  // From the second step of a model on, nothing is allocated.
  if (products_.size() < kernels.size()) products_.resize(kernels.size());
  taken_.reserve(kernels.size());
}

// By tiles: oneDNN then reads a tile as it reads the whole, and takes the same kernel.
static void copy_tiles(const float* input, DeferredProduct& to) {
  to.input_tiles.grow_to(static_cast<std::size_t>(to.samples * to.inputs));
  float* next = to.input_tiles.data();
  for (std::int64_t tile = 0; tile < to.tiles(); ++tile) {
    for (std::int64_t sample = 0; sample < to.samples; ++sample) {
      next = std::copy_n(input + sample * to.inputs + tile * DeferredProduct::kTileRows, to.rows_of(tile), next);
    }
  }
}

// The kernel that begins at this place of the gradients; the number of kernels if none does.
static std::size_t kernel_at(std::span<const float> gradients, std::span<const std::size_t> kernels,
                             const float* gradient) {
  if (gradient < gradients.data() || gradient >= gradients.data() + gradients.size()) return kernels.size();
  const auto begin = static_cast<std::size_t>(gradient - gradients.data());
  const auto found = std::ranges::lower_bound(kernels, begin);
  return found == kernels.end() || *found != begin ? kernels.size() : static_cast<std::size_t>(found - kernels.begin());
}

bool DeferredProducts::wants(const DenseShape& shape, const float* gradient) const {
  return kernel_at(gradients_, kernels_, gradient) < kernels_.size() && limits_.allow(shape.inputs, shape.outputs);
}

void DeferredProducts::take(const DenseShape& shape, const float* input, const float* output_gradient,
                            const float* gradient) {
  const std::size_t kernel = kernel_at(gradients_, kernels_, gradient);
  HOLDFAST_ASSERT(kernel < kernels_.size());
  DeferredProduct& product = products_[kernel];
  product.begin = kernels_[kernel];
  product.samples = shape.rows;
  product.inputs = shape.inputs;
  product.outputs = shape.outputs;
  copy_tiles(input, product);
  product.output_gradient.grow_to(static_cast<std::size_t>(shape.rows * shape.outputs));
  std::copy_n(output_gradient, shape.rows * shape.outputs, product.output_gradient.data());
  const auto place =
      std::ranges::lower_bound(taken_, product.begin, {}, [](const DeferredProduct* other) { return other->begin; });
  HOLDFAST_ASSERT(place == taken_.end() || *place != &product);
  taken_.insert(place, &product);
}

}  // namespace holdfast::compute
