// Dropout on CUDA devices. Draws come from a counter-based generator: each thread computes those of its own elements,
// and both passes compute the same ones, so no mask is stored. Seed, step and sample are read from device memory, so a
// recorded graph draws anew in each step. See docs/decisions/devices.md.

#include "compute/cuda/kernels/cuda_dropout.h"
#include "compute/cuda/runtime/cuda_elements.cuh"
#include "core/philox.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"

namespace holdfast::compute {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
// A warp draws for so many elements of one sample, because finding a sample's sequence costs as much as two draws.
constexpr int kBlocksOfLane = 4;
constexpr std::int64_t kWarpElements = std::int64_t{kWarp} * kVectorFloats * kBlocksOfLane;

__global__ void set_draws_kernel(RandomKey* to, RandomKey draws) {
  *to = draws;
}

struct DropoutPass {
  DropoutShape shape;
  float kept;
  const RandomKey* draws;
  const float* input;
  float* output;
};

__device__ PhiloxSequence sequence_of(const DropoutPass& pass, std::int64_t sample) {
  // From memory and not from an argument: a recording would repeat the argument of its first step.
  const RandomKey draws = *pass.draws;
  const std::uint64_t sequence =
      static_cast<std::uint64_t>(draws.step) * pass.shape.sequences_per_step + pass.shape.sequence;
  return philox_sequence(draws.seed, static_cast<std::uint32_t>(Purpose::dropout), sequence,
                         static_cast<std::uint64_t>(draws.first_sample + sample));
}

__device__ float factor_of(const DropoutPass& pass, std::uint32_t draw) {
  return unit_float(draw) < pass.shape.rate ? 0.0F : pass.kept;
}

// Four draws, for elements 4 * block to 4 * block + 3 of the sample that begins at `sample`.
template <bool kVectors>
__device__ void drop_block(const DropoutPass& pass, const PhiloxSequence& sequence, std::size_t sample,
                           std::int64_t block) {
  const PhiloxBlock drawn = philox_draws(sequence, static_cast<std::uint64_t>(block));
  const std::int64_t first = block * kVectorFloats;
  if constexpr (kVectors) {
    FloatVector<kVectorFloats> values = load<kVectorFloats>(pass.input, sample + first);
    // A product, and not a choice, as on the host: a dropped NaN stays a NaN on both.
    for (int i = 0; i < kVectorFloats; ++i) values.at[i] *= factor_of(pass, drawn.word[i]);
    store(pass.output, sample + first, values);
  } else {
    for (int i = 0; i < kVectorFloats && first + i < pass.shape.elements; ++i) {
      pass.output[sample + first + i] = pass.input[sample + first + i] * factor_of(pass, drawn.word[i]);
    }
  }
}

// Each warp computes a part of one sample. With kVectors a sample consists of whole vectors.
template <bool kVectors>
__global__ void __launch_bounds__(kThreads) dropout_kernel(DropoutPass pass, std::int64_t pieces_of_sample) {
  const std::int64_t piece = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  // A warp never spans two samples, because each sample has a sequence of its own.
  const std::int64_t sample = piece / pieces_of_sample;
  if (sample >= pass.shape.samples) return;
  const PhiloxSequence sequence = sequence_of(pass, sample);
  const std::int64_t first_block = piece % pieces_of_sample * (kWarpElements / kVectorFloats) + threadIdx.x % kWarp;
#pragma unroll
  for (int i = 0; i < kBlocksOfLane; ++i) {
    const std::int64_t block = first_block + i * kWarp;
    if (block * kVectorFloats >= pass.shape.elements) return;
    drop_block<kVectors>(pass, sequence, static_cast<std::size_t>(sample * pass.shape.elements), block);
  }
}

class CudaDropout final : public DropoutOperation {
 public:
  CudaDropout(const DropoutShape& shape, const CudaDraws& draws, cudaStream_t stream)
      : shape_(shape), draws_(draws), stream_(stream) {
    HOLDFAST_ASSERT(shape.samples >= 0 && shape.elements >= 0 && shape.rate >= 0 && shape.rate < 1);
  }

  void forward(const float* input, float* output) override { multiply(input, output); }
  void backward(const float* output_gradient, float* input_gradient) override {
    multiply(output_gradient, input_gradient);
  }

 private:
  void multiply(const float* from, float* to) {
    if (shape_.samples == 0 || shape_.elements == 0) return;
    const DropoutPass pass = {shape_, 1.0F / (1.0F - shape_.rate), draws_.device(), from, to};
    const std::int64_t pieces = (shape_.elements + kWarpElements - 1) / kWarpElements;
    const unsigned blocks = block_count(shape_.samples * pieces, kThreads / kWarp);
    // A block of draws is for one vector, so both ways draw the same numbers.
    if (shape_.elements % kVectorFloats == 0 && is_aligned_for_vectors({from, to})) {
      launch(dropout_kernel<true>, blocks, kThreads, stream_, pass, pieces);
    } else {
      launch(dropout_kernel<false>, blocks, kThreads, stream_, pass, pieces);
    }
    check_launch("dropout", {{"samples", shape_.samples}, {"elements of a sample", shape_.elements}});
  }

  const DropoutShape shape_;
  const CudaDraws& draws_;
  const cudaStream_t stream_;
};

}  // namespace

CudaDraws::CudaDraws(MemorySpace& memory, cudaStream_t stream)
    : stream_(stream), memory_(memory.allocate(sizeof(RandomKey) / sizeof(float))) {
  static_assert(sizeof(RandomKey) % sizeof(float) == 0);
}

// A launch copies its arguments, so no host memory has to stay unchanged until the device has read it.
void CudaDraws::set(const RandomKey& draws) {
  launch(set_draws_kernel, 1, 1, stream_, reinterpret_cast<RandomKey*>(memory_.get()), draws);
  check_launch("set_draws", {{"step", draws.step}});
}

std::unique_ptr<DropoutOperation> make_cuda_dropout(const DropoutShape& shape, const CudaDraws& draws,
                                                    cudaStream_t stream) {
  return std::make_unique<CudaDropout>(shape, draws, stream);
}

}  // namespace holdfast::compute
