// The mask is not stored: the backward pass draws it again, which takes less time than to read it from memory where it
// is as large as the numbers.

#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/cpu/operations.h"
#include "compute/cpu/parts.h"
#include "holdfast/core/random.h"

namespace holdfast::compute {

namespace {

class CpuDropout : public DropoutOperation {
 public:
  CpuDropout(const CpuContext& context, const DropoutShape& shape, const RandomKey& draws)
      : threads_(context.threads()), shape_(shape), draws_(draws) {}

  void forward(const float* input, float* output) override {
    // The backward pass must draw the same numbers, whatever set_draws() was given since.
    drawn_ = draws_;
    drop(input, output);
  }

  void backward(const float* output_gradient, float* input_gradient) override { drop(output_gradient, input_gradient); }

 private:
  void drop(const float* from, float* to) const {
    const VectorKernels& kernels = vector_kernels();
    // Each layer of each step has a sequence of its own, so two layers never drop the same pattern.
    const std::uint64_t number = static_cast<std::uint64_t>(drawn_.step) * shape_.sequences_per_step + shape_.sequence;
    // What is kept is scaled, so that the expected sum stays and inference needs no dropout at all.
    const float kept = 1.0F / (1.0F - shape_.rate);
    const DividedWork samples = {.count = shape_.samples, .floats_each = shape_.elements};
    for_each_part(threads_, samples, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t sample = begin; sample < end; ++sample) {
        const PhiloxSequence sequence =
            philox_sequence(drawn_.seed, static_cast<std::uint32_t>(Purpose::dropout), number,
                            static_cast<std::uint64_t>(drawn_.first_sample + sample));
        const std::int64_t offset = sample * shape_.elements;
        kernels.dropout(sequence, from + offset, shape_.elements, shape_.rate, kept, to + offset);
      }
    });
  }

  const int threads_;
  const DropoutShape shape_;
  const RandomKey& draws_;
  RandomKey drawn_;  // those of the last forward pass
};

}  // namespace

std::unique_ptr<DropoutOperation> make_cpu_dropout(const CpuContext& context, const DropoutShape& shape,
                                                   const RandomKey& draws) {
  return std::make_unique<CpuDropout>(context, shape, draws);
}

}  // namespace holdfast::compute
