// Layers run backward, so products come mostly in descending order of their gradients. They are listed in ascending
// order, in which a sum goes through the gradients. Each kernel keeps its memory from step to step.

#include "compute/deferred_products.h"

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast::compute {

bool DeferralLimits::allow(const DenseShape& shape) const {
  // Smaller gradients stay in the caches between the shard and the addition.
  constexpr std::int64_t kLeastFloats = std::int64_t{1} << 20;
  // With more samples the products take longer than the memory. Also, up to here one sum over the samples has one
  // piece, in a tile as in the whole.
  constexpr std::int64_t kMostSamples = 256;
  const std::int64_t gradient = shape.inputs * shape.outputs;
  return gradient >= kLeastFloats && most_samples <= kMostSamples &&
         // What is kept is at most half of what one shard's gradient would take.
         2 * all_samples * (shape.inputs + shape.outputs) <= gradient;
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

bool DeferredProducts::take(const DenseShape& shape, const float* input, const float* output_gradient,
                            const float* gradient) {
  if (gradient < gradients_.data() || gradient >= gradients_.data() + gradients_.size()) return false;
  const auto begin = static_cast<std::size_t>(gradient - gradients_.data());
  const auto kernel = std::ranges::lower_bound(kernels_, begin);
  if (kernel == kernels_.end() || *kernel != begin || !limits_.allow(shape)) return false;
  DeferredProduct& product = products_[static_cast<std::size_t>(kernel - kernels_.begin())];
  product.begin = begin;
  product.samples = shape.rows;
  product.inputs = shape.inputs;
  product.outputs = shape.outputs;
  copy_tiles(input, product);
  product.output_gradient.grow_to(static_cast<std::size_t>(shape.rows * shape.outputs));
  std::copy_n(output_gradient, shape.rows * shape.outputs, product.output_gradient.data());
  const auto place =
      std::ranges::lower_bound(taken_, begin, {}, [](const DeferredProduct* other) { return other->begin; });
  HOLDFAST_ASSERT(place == taken_.end() || (*place)->begin != begin);
  taken_.insert(place, &product);
  return true;
}

}  // namespace holdfast::compute
