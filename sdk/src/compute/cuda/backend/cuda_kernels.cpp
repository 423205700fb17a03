// Kernels cannot throw, so a bad class label is written to a word in device memory, which check() reads when the sum of
// losses is NaN. No step has to wait for that word otherwise. See docs/decisions/devices.md.

#include "compute/cuda/backend/cuda_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "compute/cuda/kernels/cuda_gradient_norms.h"
#include "compute/cuda/kernels/cuda_losses.h"
#include "compute/cuda/kernels/cuda_metrics.h"
#include "compute/cuda/kernels/cuda_optimizers.h"
#include "compute/cuda/runtime/cuda_arrays.h"
#include "compute/cuda/runtime/cuda_error.h"
#include "compute/label_problems.h"
#include "core/sample_error.h"

namespace holdfast::compute {
namespace {

// A model with more outputs that differ has its last ones described as one of them.
constexpr std::size_t kMostChecked = 32;

SampleError bad_label_error(BadLabel word, const LossShape& shape) {
  const auto label = std::bit_cast<float>(static_cast<std::uint32_t>(word));
  // The row is in the upper half, so the smallest word is that of the first bad row.
  return SampleError(static_cast<std::int64_t>(word >> 32), shape.first_row + shape.rows,
                     shape.kind == LossKind::binary_crossentropy ? problem_of_probability(label)
                                                                 : problem_of_class_label(label, shape.outputs));
}

}  // namespace

struct CudaKernels::Workspace {
  SumWorkspace sums;
  BadLabel bad_labels[kMostChecked];
};

CudaKernels::CudaKernels(MemorySpace& memory, cudaStream_t stream)
    : memory_(memory), stream_(stream), workspace_(memory.allocate(sizeof(Workspace) / sizeof(float))) {
  // A memory space gives out floats.
  static_assert(sizeof(Workspace) % sizeof(float) == 0);
  forget_bad_labels();
}

CudaKernels::~CudaKernels() = default;

CudaKernels::Workspace* CudaKernels::workspace() const {
  return reinterpret_cast<Workspace*>(workspace_.get());
}

void CudaKernels::forget_bad_labels() {
  static_assert(kNoBadLabel == std::numeric_limits<BadLabel>::max());
  // All ones are the largest word, which a minimum over rows never keeps.
  check_cuda(cudaMemsetAsync(workspace()->bad_labels, 0xFF, sizeof(Workspace::bad_labels), stream_), "cudaMemsetAsync");
}

// A word for each kind and size of output, since these decide the sentence about a bad label. Outputs that agree in
// both share one.
std::size_t CudaKernels::place_of_labels(const LossShape& shape) {
  const auto found = std::ranges::find_if(checked_, [&](const LossShape& checked) {
    return checked.kind == shape.kind && checked.outputs == shape.outputs;
  });
  const auto place = static_cast<std::size_t>(found - checked_.begin());
  if (found != checked_.end() || place == kMostChecked) {
    checked_[std::min(place, kMostChecked - 1)] = shape;
    return std::min(place, kMostChecked - 1);
  }
  checked_.push_back(shape);
  return place;
}

void CudaKernels::loss(const LossShape& shape, const RowArrays& arrays, float scale, float* gradient, float* sum) {
  // The row's number has 32 bits in the word of a bad label.
  HOLDFAST_ASSERT(shape.rows >= 1 && shape.outputs >= 1 &&
                  shape.first_row + shape.rows < std::numeric_limits<std::uint32_t>::max());
  queue_loss(shape, {arrays, gradient, sum}, scale, &workspace()->sums,
             &workspace()->bad_labels[place_of_labels(shape)], stream_);
}

void CudaKernels::metric(const MetricShape& shape, const RowArrays& arrays, float* sum) {
  HOLDFAST_ASSERT(shape.rows >= 1 && shape.outputs >= 1);
  queue_metric(shape, arrays, sum, &workspace()->sums, stream_);
}

void CudaKernels::sgd(const SgdStep& step, std::size_t floats, float* parameters, const float* gradients,
                      float* velocity) {
  queue_sgd(step, floats, parameters, gradients, velocity, stream_);
}

void CudaKernels::adam(const AdamStep& step, std::size_t floats, float* parameters, const float* gradients, float* m,
                       float* v) {
  queue_adam(step, floats, parameters, gradients, m, v, stream_);
}

void CudaKernels::clip_values(float limit, std::size_t floats, const float* gradients, float* clipped) {
  queue_clip_values(limit, floats, gradients, clipped, stream_);
}

void CudaKernels::clip_norms(std::span<const NormRange> ranges, float limit, const float* gradients, float* clipped,
                             float* workspace) {
  queue_clip_norms(ranges, limit, gradients, clipped, workspace, stream_);
}

void CudaKernels::update_moving(const float* sums, const float* count, std::size_t floats, float momentum,
                                float* moving) {
  queue_update_moving(sums, count, floats, momentum, moving, stream_);
}

void CudaKernels::find_not_finite(const float* array, std::size_t floats, float* found) {
  // The kernel only ever sets the flag, so it begins with zero.
  check_cuda(cudaMemsetAsync(found, 0, sizeof *found, stream_), "cudaMemsetAsync of 4 bytes");
  if (floats > 0) flag_not_finite(array, floats, reinterpret_cast<std::uint32_t*>(found), stream_);
}

void CudaKernels::clear(std::span<const Gap> gaps, float* arena) {
  queue_clear(gaps, arena, stream_);
}

void CudaKernels::check() {
  // The memory space copies floats, but does not change their bits.
  constexpr std::size_t kFloatsOfLabel = sizeof(BadLabel) / sizeof(float);
  std::array<float, kMostChecked * kFloatsOfLabel> bits{};
  memory_.copy_to_host({reinterpret_cast<const float*>(workspace()->bad_labels), bits.size()}, bits);
  std::array<BadLabel, kMostChecked> words{};
  std::memcpy(words.data(), bits.data(), sizeof(words));
  for (std::size_t place = 0; place < checked_.size(); ++place) {
    if (words[place] == kNoBadLabel) continue;
    forget_bad_labels();
    throw bad_label_error(words[place], checked_[place]);
  }
}

}  // namespace holdfast::compute
