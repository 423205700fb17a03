#pragma once

// The arithmetic of layers. A back end makes operation objects, each for one shape. Choosing a kernel, compiling it and
// finding memory happen when the object is made, so running it costs none of that.
//
// All arrays are f32 and row-major, in the back end's memory space; images are [sample, height, width, channel].
// Outputs are overwritten, never added to. On a device an operation is queued in the order of its memory space and not
// waited for. A back end and its operations are for one thread at a time; several back ends may run on several threads
// at once.
//
// For the same shape and number of threads an operation gives the same bits, in any thread and process, on machines
// with the same description(). A failure is thrown as an Error that names operation and shape. See
// docs/decisions/device-arithmetic.md.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "compute/array_kernels.h"
#include "compute/batched_product.h"
#include "compute/device_kernels.h"
#include "compute/repeated_product.h"
#include "holdfast/compute/activation.h"
#include "holdfast/compute/padding.h"
#include "holdfast/compute/precision.h"
#include "holdfast/core/memory_space.h"

namespace holdfast::compute {

// The version of our own arithmetic: the formulas of compute/arithmetic and the order of our sums. It is part of each
// description(), so that a run is not resumed with other bits unknowingly. Raise it with each change of such bits.
//   1  functions of the C library, oneDNN's activations (descriptions without a version)
//   2  our own exponentials, sums in lanes
inline constexpr int kKernelsVersion = 2;

// The passes that an operation is made for; others must not be called.
//
// A backward pass follows a forward pass with the same input and kernel, and both backward passes get the same output
// gradient. So an operation may keep what it made of these arrays.
struct Use {
  bool training = false;        // backward passes to the weights
  bool input_gradient = false;  // backward pass to the input
};

class DeferredProducts;

struct DenseShape {
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool has_bias = true;
};

// output[row, out] = sum over in of input[row, in] kernel[in, out] + bias[out]. Bias pointers are ignored without a
// bias.
class DenseOperation {
 public:
  virtual ~DenseOperation() = default;

  virtual void forward(const float* input, const float* kernel, const float* bias, float* output) = 0;
  virtual void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) = 0;
  virtual void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                                float* bias_gradient) = 0;
};

// Takes images [sample, height, width, channel], or volumes [sample, depth, height, width, channel].
struct ConvolutionShape {
  std::int64_t samples = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::int64_t filters = 0;
  std::int64_t kernel_height = 0;
  std::int64_t kernel_width = 0;
  std::int64_t stride_height = 1;
  std::int64_t stride_width = 1;
  Padding padding = Padding::valid;
  bool has_bias = true;
  // Channels and filters are divided evenly into groups, in order. A filter sees the channels of its group.
  std::int64_t groups = 1;
  // Distances of the elements of a window.
  std::int64_t dilation_height = 1;
  std::int64_t dilation_width = 1;
  // Images are volumes of depth 1.
  std::int64_t depth = 1;
  std::int64_t kernel_depth = 1;
  std::int64_t stride_depth = 1;
  std::int64_t dilation_depth = 1;
};

// Cross-correlation, as the field calls convolution. Kernel [depth, height, width, channel of the group, filter];
// padding counts as zero. Passes may run alone and in any order: a transposed convolution runs the backward pass to the
// input first.
class ConvolutionOperation {
 public:
  virtual ~ConvolutionOperation() = default;

  virtual void forward(const float* input, const float* kernel, const float* bias, float* output) = 0;
  virtual void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) = 0;
  virtual void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                                float* bias_gradient) = 0;
};

enum class PoolingKind {
  maximum,  // ties: the gradient goes to the first in row-major order
  average,  // of the elements inside the input: padding counts neither as value nor as element
};

struct PoolingShape {
  PoolingKind kind = PoolingKind::maximum;
  std::int64_t samples = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::int64_t pool_height = 0;
  std::int64_t pool_width = 0;
  std::int64_t stride_height = 1;
  std::int64_t stride_width = 1;
  Padding padding = Padding::valid;
};

class PoolingOperation {
 public:
  virtual ~PoolingOperation() = default;

  virtual void forward(const float* input, float* output) = 0;
  // The backward pass of the last forward pass.
  virtual void backward(const float* output_gradient, float* input_gradient) = 0;
};

struct ActivationShape {
  Activation activation = Activation::relu;  // not linear
  std::int64_t rows = 0;
  std::int64_t channels = 0;
};

// Whether the backward pass is computed from the output (and the forward pass may then overwrite its input) or from the
// input.
bool is_differentiated_by_output(Activation activation);

class ActivationOperation {
 public:
  virtual ~ActivationOperation() = default;

  // `output` may be `input`.
  virtual void forward(const float* input, float* output) = 0;
  // `kept` is the forward pass's output or input, as is_differentiated_by_output() says.
  virtual void backward(const float* kept, const float* output_gradient, float* input_gradient) = 0;
};

struct BatchNormalizationShape {
  std::int64_t rows = 0;  // samples times positions
  std::int64_t channels = 0;
  float epsilon = 0;
};

// output = (input - mean) / sqrt(variance + epsilon) * gamma + beta, per channel (Ioffe and Szegedy, 2015).
class BatchNormalizationOperation {
 public:
  virtual ~BatchNormalizationOperation() = default;

  // For training: the statistics are those of the input.
  virtual void forward_training(const float* input, const float* gamma, const float* beta, float* output) = 0;
  // For inference: the statistics are given.
  virtual void forward_inference(const float* input, const float* gamma, const float* beta, const float* mean,
                                 const float* variance, float* output) = 0;
  // The backward pass of the last forward_training(); mean and variance count as functions of the input. Without
  // Use::input_gradient the pointer `input_gradient` is ignored.
  virtual void backward(const float* input, const float* gamma, const float* output_gradient, float* input_gradient,
                        float* gamma_gradient, float* beta_gradient) = 0;

  // Writes what the last forward_training() adds to the statistics of the global batch, as 2 * channels + 1 floats:
  // rows * mean of each channel, rows * (biased) variance of each channel, rows.
  virtual void contribute(float* contributions) = 0;
};

struct DropoutShape {
  std::int64_t samples = 0;
  std::int64_t elements = 0;  // of one sample
  float rate = 0;             // in [0, 1): the probability that an element becomes zero
  // In each step this operation uses the sequence of draws number step * sequences_per_step + sequence.
  std::uint64_t sequences_per_step = 1;
  std::uint64_t sequence = 0;
};

// The random draws of a shard in a training step. Sample i of the shard is sample first_sample + i of the global batch,
// and its mask depends on that number. So the mask does not depend on how batches are cut into shards.
struct RandomKey {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t first_sample = 0;
};

// For training only. Elements that are kept are multiplied by 1 / (1 - rate): "inverted" dropout (Srivastava et al.,
// 2014).
class DropoutOperation {
 public:
  virtual ~DropoutOperation() = default;

  // Element i of sample k is zero where draw i of Random(seed, Purpose::dropout, sequence of the step, first_sample +
  // k) is below the rate. `output` may be `input`.
  virtual void forward(const float* input, float* output) = 0;
  // The backward pass of the last forward pass. `input_gradient` may be `output_gradient`.
  virtual void backward(const float* output_gradient, float* input_gradient) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // Operations refer to the back end, which must outlive them.
  virtual std::unique_ptr<DenseOperation> dense(const DenseShape& shape, Use use) = 0;
  virtual std::unique_ptr<ConvolutionOperation> convolution(const ConvolutionShape& shape, Use use) = 0;
  virtual std::unique_ptr<PoolingOperation> pooling(const PoolingShape& shape, Use use) = 0;
  virtual std::unique_ptr<ActivationOperation> activation(const ActivationShape& shape, Use use) = 0;
  virtual std::unique_ptr<BatchNormalizationOperation> batch_normalization(const BatchNormalizationShape& shape,
                                                                           Use use) = 0;
  virtual std::unique_ptr<DropoutOperation> dropout(const DropoutShape& shape) = 0;
  virtual std::unique_ptr<BatchedProductOperation> batched_product(const BatchedProductShape& shape) = 0;
  // That of repeated_dense(), unless a back end has a faster one.
  virtual std::unique_ptr<RepeatedProductOperation> repeated_product(const RepeatedProductShape& shape);
  // What names its order of sums, where it is not that of dense(). Empty: it is.
  virtual std::string repeated_product_arithmetic() const { return {}; }

  // Sets the draws for the passes that follow.
  virtual void set_draws(const RandomKey& draws) = 0;

  // From here on, gradients of kernels may be left to `deferred` (deferred_products.h), if it wants them; null: none
  // are. Only where memory() is the host's. It must outlive the passes that follow, or be replaced before them.
  virtual void defer_products(DeferredProducts* deferred) { static_cast<void>(deferred); }

  // Calls the parts, which queue work on this back end and its memory space, one after another. They must not wait,
  // allocate, make operations or set draws.
  //
  // A device may record the work. If it is asked again with an equal key, it repeats the recorded operations on the
  // same arrays, with their content of then, and calls no part. So the key must have everything that the parts depend
  // on, their number included, except for the draws. `after_part` is called each time after a part was queued, and is
  // never recorded. Exceptions of the parts are passed on.
  virtual void repeat(std::span<const std::uint64_t> key, std::span<const std::function<void()>> parts,
                      const std::function<void(std::size_t part)>& after_part) {
    static_cast<void>(key);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      parts[part]();
      after_part(part);
    }
  }
  void repeat(std::span<const std::uint64_t> key, const std::function<void()>& queue) {
    repeat(key, std::span(&queue, 1), [](std::size_t) {});
  }
  // Why the device cannot record the work and calls the parts each time instead; empty if it can.
  virtual std::string repeat_obstacle() const = 0;

  // The memory space, which back ends may share. It must outlive all arrays and operations.
  virtual MemorySpace& memory() = 0;
  // General kernels; valid as long as the back end.
  virtual ArrayKernels& array_kernels() = 0;
  // Null if memory() is the host's.
  virtual DeviceKernels* device_kernels() = 0;

  // What the operations that were made so far need besides the arrays that they are given. Only where memory() is the
  // host's; 0 on devices.
  virtual std::size_t workspace_bytes() const { return 0; }

  // What the bits depend on besides shapes: "oneDNN 2.6.3, isa avx2, kernels 2, 1 thread per
  // shard".
  virtual std::string description() const = 0;

  // Calls `queue` with the stream of the device, a cudaStream_t, for a kernel of an application. What it queues there
  // comes after all earlier work and before all later work. Only where memory() is not the host's.
  virtual void queue_on_stream(const std::function<void(void* stream)>& queue) = 0;
};

// Each operation runs on exactly `threads` threads (at least 1), whatever the application and the environment have set.
// The OpenMP settings of the application do not change. The precision is checked as check_cpu_precision() does.
std::unique_ptr<Backend> make_cpu_backend(int threads, Precision precision = Precision::f32);

// Throws Error{invalid_argument} for a precision that no CPU has, and Error{unavailable} for bf16 on a CPU without the
// instructions, or with them switched off.
void check_cpu_precision(Precision precision);

// The back end of a CUDA device, named as "cuda:1". All back ends of a device share its memory space and its order.
// Throws Error{unavailable}, which says what is missing.
std::unique_ptr<Backend> make_cuda_backend(const std::string& device, Precision precision = Precision::f32);

// How many threads the application and the environment allow the calling thread.
int default_threads();

}  // namespace holdfast::compute
