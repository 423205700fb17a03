// Kernels cannot throw, so a bad class label is written to a word in device memory, which check() reads when the sum of
// losses is NaN. No step has to wait for that word otherwise. See docs/decisions/devices.md.

#include "compute/cuda/backend/cuda_kernels.h"

#include <fmt/format.h>
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
#include "core/sample_error.h"

namespace holdfast::compute {
namespace {

constexpr std::size_t kFloatsOfLabel = sizeof(BadLabel) / sizeof(float);

SampleError bad_label_error(BadLabel word, std::int64_t rows, std::int64_t classes) {
  const auto label = std::bit_cast<float>(static_cast<std::uint32_t>(word));
  // The row is in the upper half, so the smallest word is that of the first bad row.
  return SampleError(
      static_cast<std::int64_t>(word >> 32), rows,
      fmt::format("has the class label {}; the model has {} classes, so labels are the whole numbers 0 to {}", label,
                  classes, classes - 1));
}

}  // namespace

struct CudaKernels::Workspace {
  SumWorkspace sums;
  BadLabel bad_label;
};

CudaKernels::CudaKernels(MemorySpace& memory, cudaStream_t stream)
    : memory_(memory), stream_(stream), workspace_(memory.allocate(sizeof(Workspace) / sizeof(float))) {
  // A memory space gives out floats.
  static_assert(sizeof(Workspace) % sizeof(float) == 0);
  forget_bad_label();
}

CudaKernels::~CudaKernels() = default;

CudaKernels::Workspace* CudaKernels::workspace() const {
  return reinterpret_cast<Workspace*>(workspace_.get());
}

void CudaKernels::forget_bad_label() {
  static_assert(kNoBadLabel == std::numeric_limits<BadLabel>::max());
  // All ones are the largest word, which a minimum over samples never keeps.
  check_cuda(cudaMemsetAsync(&workspace()->bad_label, 0xFF, sizeof(BadLabel), stream_), "cudaMemsetAsync");
}

void CudaKernels::loss(const LossShape& shape, const RowArrays& arrays, float scale, float* gradient, float* sum) {
  // The row's number has 32 bits in the word of a bad label.
  HOLDFAST_ASSERT(shape.rows >= 1 && shape.outputs >= 1 &&
                  shape.first_row + shape.rows < std::numeric_limits<std::uint32_t>::max());
  // For the sentence of check(), which comes later than the loss and knows nothing of it.
  if (shape.kind == LossKind::sparse_categorical_crossentropy) {
    rows_ = shape.first_row + shape.rows;
    classes_ = shape.outputs;
  }
  queue_loss(shape, {arrays, gradient, sum}, scale, &workspace()->sums, &workspace()->bad_label, stream_);
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
  float bits[kFloatsOfLabel] = {};
  memory_.copy_to_host({reinterpret_cast<const float*>(&workspace()->bad_label), kFloatsOfLabel}, bits);
  BadLabel word = kNoBadLabel;
  std::memcpy(&word, bits, sizeof(word));
  if (word == kNoBadLabel) return;
  forget_bad_label();
  throw bad_label_error(word, rows_, classes_);
}

}  // namespace holdfast::compute
