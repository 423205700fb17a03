// Activations on CPUs, by our own loops. Except for GELU the derivative is computed from the output, so the input need
// not be kept for the backward pass. See docs/decisions/processor-loops.md.

#include "holdfast/compute/activation.h"

#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/cpu/operations.h"
#include "compute/cpu/parts.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {

// GELU falls and rises again, so an output belongs to two inputs with different slopes.
bool is_differentiated_by_output(Activation activation) {
  return activation != Activation::gelu;
}

static const ActivationPasses& passes_of(Activation activation) {
  // The table for this machine. All tables give the same bits.
  const VectorKernels& kernels = vector_kernels();
  // Softmax works on rows and has a class of its own. A linear activation has no operation at all.
  switch (activation) {
    case Activation::relu:
      return kernels.relu;
    case Activation::tanh:
      return kernels.tanh;
    case Activation::sigmoid:
      return kernels.sigmoid;
    case Activation::gelu:
      return kernels.gelu;
    case Activation::linear:
    case Activation::softmax:
      break;
  }
  HOLDFAST_ASSERT(false);
}

namespace {

class CpuElementActivation : public ActivationOperation {
 public:
  CpuElementActivation(const CpuContext& context, const ActivationShape& shape)
      : threads_(context.threads()), passes_(passes_of(shape.activation)), count_(shape.rows * shape.channels) {}

  // Parts may begin anywhere, since each element is computed by itself.
  void forward(const float* input, float* output) override {
    for_each_part(threads_, {.count = count_}, [&](std::int64_t begin, std::int64_t end) {
      passes_.forward(input + begin, output + begin, end - begin);
    });
  }

  void backward(const float* kept, const float* output_gradient, float* input_gradient) override {
    for_each_part(threads_, {.count = count_}, [&](std::int64_t begin, std::int64_t end) {
      passes_.backward(kept + begin, output_gradient + begin, input_gradient + begin, end - begin);
    });
  }

 private:
  const int threads_;
  const ActivationPasses passes_;
  const std::int64_t count_;
};

class CpuSoftmax : public ActivationOperation {
 public:
  CpuSoftmax(const CpuContext& context, const ActivationShape& shape)
      : threads_(context.threads()),
        kernels_(vector_kernels()),
        channels_(shape.channels),
        // Parts are whole rows: a sum over a part of a row would have another order.
        rows_{.count = shape.rows, .floats_each = shape.channels} {}

  void forward(const float* input, float* output) override {
    for_each_part(threads_, rows_, [&](std::int64_t begin, std::int64_t end) {
      kernels_.softmax(input + begin * channels_, end - begin, channels_, output + begin * channels_);
    });
  }

  // `kept` is the output, from which the gradient follows: y * (dy - sum of y * dy).
  void backward(const float* kept, const float* output_gradient, float* input_gradient) override {
    for_each_part(threads_, rows_, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t offset = begin * channels_;
      kernels_.softmax_backward(kept + offset, output_gradient + offset, end - begin, channels_,
                                input_gradient + offset);
    });
  }

 private:
  const int threads_;
  const VectorKernels& kernels_;
  const std::int64_t channels_;
  const DividedWork rows_;
};

}  // namespace

std::unique_ptr<ActivationOperation> make_cpu_activation(const CpuContext& context, const ActivationShape& shape) {
  if (shape.activation == Activation::softmax) return std::make_unique<CpuSoftmax>(context, shape);
  return std::make_unique<CpuElementActivation>(context, shape);
}

}  // namespace holdfast::compute
