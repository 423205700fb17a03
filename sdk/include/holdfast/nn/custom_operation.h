#pragma once

// Operations with kernels of an application's own, for what functions of values (functions.h) cannot say or say too
// slowly. An operation computes arrays from arrays; a layer applies it in its build():
//
//   class RunningSum final : public CustomOperation {                  // y[i] = x[0] + ... + x[i] along the last axis
//    public:
//     explicit RunningSum(bool is_reversed = false) : is_reversed_(is_reversed) {}
//     std::string name() const override { return "my_app.running_sum"; }
//     std::vector<ValueSpec> infer(std::span<const ValueSpec> inputs) const override { return {inputs[0]}; }
//     void run(const OperationArrays& arrays) const override {
//       const std::span<const float> x = arrays.inputs[0].floats();
//       const std::span<float> y = arrays.outputs[0].floats();
//       const auto length = static_cast<std::size_t>(arrays.inputs[0].spec().shape.extents().back());
//       for (std::size_t row = 0; row < x.size(); row += length) {
//         float sum = 0;
//         for (std::size_t i = 0; i < length; ++i) {
//           const std::size_t at = row + (is_reversed_ ? length - 1 - i : i);
//           y[at] = sum += x[at];
//         }
//       }
//     }
//     std::vector<std::optional<Value>> gradient(const OperationGradient& at) const override {
//       return {apply_custom(std::make_shared<const RunningSum>(!is_reversed_), {*at.output_gradients[0]})[0]};
//     }
//     ...
//   std::vector<Value> build(LayerBuilder&, std::span<const Value> inputs) const override {
//     return apply_custom(std::make_shared<const RunningSum>(), {inputs[0]});
//   }
//
// Files hold layers and never operations. So the layer is registered by its name (register_layer() in layer_config.h)
// and writes the options of its operations into its configuration.
//
// What run() promises, for the same bits on any number of replicas:
//   - The results depend on the arrays and on the options of the operation alone: no clock, no random numbers, no
//     counter, and one order of additions. Arithmetic of the C library has other bits in another version of it.
//   - Samples are not mixed: what is written for a sample depends on this sample and on inputs without samples. A batch
//     is cut into shards anywhere, and run() sees the samples of one shard.
//   - The operation does not change. Several threads may call run() of one object at once, for different shards.
//   - It does its work on the calling thread and returns when it is done. It needs neither memory of its own (see
//     scratch_bytes()) nor another thread, and waits for nothing: the watchdog takes a long pause for a hang.
//
// An operation may have a function for CUDA devices too. A model with an operation that has none is refused on a
// device, before its first step, with Error{unsupported}; copies between host and device in each step would hide a slow
// model.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/nn/value.h"

namespace holdfast {

// An array that run() reads, row-major: [samples, shape...] for a value with samples, else [shape...].
class InputArray {
 public:
  // For Holdfast's own use. The spec must outlive the array.
  InputArray(const std::byte* data, const ValueSpec& spec, std::size_t elements)
      : data_(data), spec_(&spec), elements_(elements) {}

  const ValueSpec& spec() const { return *spec_; }  // shape and type, as they were declared
  // All elements. Throw Error{invalid_argument} if the array has another type; a model has f32 and i32.
  std::span<const float> floats() const;
  std::span<const std::int32_t> integers() const;  // all elements of an array of i32

 private:
  const std::byte* data_;
  const ValueSpec* spec_;
  std::size_t elements_;
};

// An array that run() writes, every element of it. Its content is unspecified before.
class OutputArray {
 public:
  // For Holdfast's own use. The spec must outlive the array.
  OutputArray(std::byte* data, const ValueSpec& spec, std::size_t elements)
      : data_(data), spec_(&spec), elements_(elements) {}

  const ValueSpec& spec() const { return *spec_; }  // shape and type, as they were declared
  // As those of InputArray.
  std::span<float> floats() const;
  std::span<std::int32_t> integers() const;  // all elements of an array of i32

 private:
  std::byte* data_;
  const ValueSpec* spec_;
  std::size_t elements_;
};

// Valid during one call. No output and no scratch overlaps another array.
struct OperationArrays {
  std::int64_t samples = 0;              // of this shard, at least 1
  std::span<const InputArray> inputs;    // in the order of apply_custom()
  std::span<const OutputArray> outputs;  // as infer() declares them
  std::span<std::byte> scratch;          // of scratch_bytes(), aligned to 64 bytes; its content is unspecified
};

// What a gradient is described with. The values have no numbers yet.
struct OperationGradient {
  std::span<const Value> inputs;   // in the order of apply_custom()
  std::span<const Value> outputs;  // in their order
  // The gradient of the loss by each output; missing where the loss does not depend on the output.
  std::span<const std::optional<Value>> output_gradients;
  std::vector<bool> needed;  // for each input, whether its gradient is used
};

class CustomOperation {
 public:
  virtual ~CustomOperation() = default;

  // In error messages: "my_app.running_sum".
  virtual std::string name() const = 0;

  // Shape (of one sample) and type of each output, at least one; types are f32 and i32. Outputs have samples if an
  // input has some, whatever the specs that are returned say. Called whenever a model is made, and always with the
  // same result. Throws Error{invalid_argument} that says what the operation needs if it cannot take the inputs.
  virtual std::vector<ValueSpec> infer(std::span<const ValueSpec> inputs) const = 0;

  // How much memory run() needs besides its arrays, for so many samples. It is allocated before the first step.
  virtual std::size_t scratch_bytes(std::span<const ValueSpec> inputs, std::int64_t samples) const;

  // Computes the outputs; see above for what it must keep to. An exception ends the step and reaches the caller of
  // fit() or predict(), as an Error that names the operation. At the first pass, elements that were not written are
  // found and become Error{invalid_argument}; later passes are not checked.
  virtual void run(const OperationArrays& arrays) const = 0;

  // Whether queue_on_device() computes what run() does.
  virtual bool runs_on_devices() const;
  // Queues the work of run() on `stream`, a cudaStream_t of the current device, and returns. Arrays and scratch lie in
  // the device's memory, so that the host must not read them. It must not wait, use another stream, or allocate memory
  // of the device: the work may be recorded, and repeated with other numbers at the same addresses. So it must queue
  // the same for equal shapes. Nothing finds elements that are not written. Never called where runs_on_devices() is
  // false.
  virtual void queue_on_device(const OperationArrays& arrays, void* stream) const;

  // The gradient of the loss by each input, described with functions of values and with other operations; missing
  // where it is zero or not needed. A gradient has the shape of its input. For an input without samples, such as a
  // weight, it may have samples: Holdfast adds them up in its own order.
  //
  // The default has no gradient. A model that needs one, because a parameter is trained before the operation, is then
  // refused with Error{unsupported} when it is made; stop_gradient() of the inputs avoids that.
  virtual std::vector<std::optional<Value>> gradient(const OperationGradient& at) const;
};

// The outputs of an operation, for the build() of a layer and for gradient(). Throws Error{invalid_argument} for a
// null, and one that names the operation if it cannot take the inputs, or if what infer() returns cannot be. In a
// model, an operation that is applied outside of a layer has no name in files, so such a model can neither be saved nor
// trained.
std::vector<Value> apply_custom(std::shared_ptr<const CustomOperation> operation, const std::vector<Value>& inputs);

}  // namespace holdfast
