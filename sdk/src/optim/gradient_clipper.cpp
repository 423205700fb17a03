// Clipping works on the sum over all shards: clipping what each shard computed would depend on how
// batches are cut. The norms are sums in a fixed order, so all ranks and devices get the same bits. See
// docs/decisions/optimizers.md.

#include "optim/gradient_clipper.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "compute/cpu/kernels/vector_kernels.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// A global norm takes one range over the whole arena: the padding between arrays is zero and adds
// nothing.
std::vector<compute::NormRange> ranges_of(const GradientClipping& clipping, std::vector<compute::NormRange> arrays,
                                          std::size_t arena_floats) {
  if (clipping.norm) return arrays;
  return {{.begin = 0, .end = arena_floats}};
}

std::size_t most_chunks(const std::vector<compute::NormRange>& ranges) {
  std::size_t most = 0;
  for (const compute::NormRange& range : ranges) most = std::max(most, compute::norm_chunks(range));
  return most;
}

}  // namespace

GradientClipper::GradientClipper(const GradientClipping& clipping, std::vector<compute::NormRange> arrays,
                                 std::size_t arena_floats, MemorySpace& memory, compute::DeviceKernels* device)
    : clipping_(clipping),
      ranges_(ranges_of(clipping, std::move(arrays), arena_floats)),
      device_(device),
      size_(arena_floats),
      clipped_(memory.allocate(arena_floats)),
      workspace_(device == nullptr || clipping.value ? nullptr
                                                     : memory.allocate(compute::norm_workspace_floats(ranges_))),
      chunk_sums_(device == nullptr ? most_chunks(ranges_) : 0) {}

std::span<const float> GradientClipper::clip(std::span<const float> gradients, const ArrayPasses& passes) {
  HOLDFAST_ASSERT(gradients.size() == size_);
  if (device_ == nullptr) {
    clip_on_host(gradients, passes);
  } else if (clipping_.value) {
    device_->clip_values(*clipping_.value, size_, gradients.data(), clipped_.get());
  } else {
    const float limit = clipping_.norm ? *clipping_.norm : *clipping_.global_norm;
    device_->clip_norms(ranges_, limit, gradients.data(), clipped_.get(), workspace_.get());
  }
  return {clipped_.get(), size_};
}

// Padding between ranges is never written: it keeps the zeros that the arena was allocated with.
void GradientClipper::clip_on_host(std::span<const float> gradients, const ArrayPasses& passes) {
  const compute::VectorKernels& kernels = compute::vector_kernels();
  if (clipping_.value) {
    const auto clip_range = [&](std::size_t begin, std::size_t end) {
      kernels.clip_values(gradients.data() + begin, static_cast<std::int64_t>(end - begin), *clipping_.value,
                          clipped_.get() + begin);
    };
    return passes(size_, 2, std::ref(clip_range));
  }
  const float limit = clipping_.norm ? *clipping_.norm : *clipping_.global_norm;
  for (const compute::NormRange& range : ranges_) {
    const std::span<const float> array = gradients.subspan(range.begin, range.end - range.begin);
    const float scale = compute::norm_scale(sum_of_squares(array, passes), limit);
    const auto scale_range = [&](std::size_t begin, std::size_t end) {
      kernels.scaled(array.data() + begin, static_cast<std::int64_t>(end - begin), scale,
                     clipped_.get() + range.begin + begin);
    };
    passes(array.size(), 2, std::ref(scale_range));
  }
}

// Each chunk has a place for its sum, so the order of the additions does not depend on the threads.
double GradientClipper::sum_of_squares(std::span<const float> array, const ArrayPasses& passes) {
  const std::span<double> sums = std::span(chunk_sums_).first(compute::norm_chunks({.begin = 0, .end = array.size()}));
  passes(sums.size(), compute::kNormChunk, [&](std::size_t begin, std::size_t end) {
    compute::square_chunks(array, begin, sums.subspan(begin, end - begin), compute::vector_kernels().squares_of_chunk);
  });
  return compute::sum_of_chunks(sums);
}

}  // namespace holdfast
